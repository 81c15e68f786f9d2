# This agent is a script. It runs on the desk, a clone of the repository, with the prompt on stdin.
# Each iteration has its own change. The first line that it prints is the description.
cat >/dev/null
edit() {
  sed "$@" src/index.html >src/edited && cat src/edited >src/index.html && rm src/edited
}
case "$PAWL_ITERATION.$PAWL_ATTEMPT" in
1.*) edit '/<!--/d' && echo "take out the comments" ;;
2.*) edit 's/^ *//' && echo "take out the indentation" ;;
3.1) edit '/Tuesday/d' && echo "take out the opening hours" ;;
3.*) edit '/^$/d' && echo "take out the empty lines" ;;
4.*) edit 's/<h1>/<h1 title="the name of the shop">/' && echo "explain the headline" ;;
5.*) : >README.md && echo "shorten the README" ;;
6.*) edit 's/#332200/#320/; s/#ffffff/#fff/; s/#664400/#640/' && echo "write the colours with three digits" ;;
esac

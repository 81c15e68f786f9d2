# This agent is a script with prepared versions. In the result file it says what it did and how
# many tools it called.
cat >/dev/null
n=$PAWL_ITERATION
[ "$n" != 5 ] || { [ "$PAWL_ATTEMPT" = 1 ] && n=5.1 || n=5.2; }
cat "versions/$n.awk" >src/sort.awk
case $n in
1) what="stop when nothing has moved" ;;
2) what="always move the smallest one to the front" ;;
3) what="put each number in its place among those before it" ;;
4) what="leave it to the caller" ;;
5.*) what="merge halves that are sorted" ;;
esac
printf '{"description": "%s", "toolCalls": 2}\n' "$what" >"$PAWL_RESULT"

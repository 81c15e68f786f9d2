# This agent is a script. It plays four roles; $PAWL_ROLE says which. The prompt is on stdin and in the file
# $PAWL_PROMPT. For the reviewer it contains the hash that the answer must name.
cat >/dev/null
case $PAWL_ROLE in
planner)
  echo "Give awk the pairs that stand for four and nine as signs of their own, in the order of their size."
  ;;
writer | fixer)
  cat "versions/$PAWL_ITERATION-$PAWL_ROLE.awk" >src/roman.awk
  case $PAWL_ITERATION-$PAWL_ROLE in
  1-writer) echo "write a smaller sign before a larger one" ;;
  1-fixer) echo "leave 8 as it was, and do the same for tens and hundreds" ;;
  2-writer) echo "say why IV is in the list" ;;
  esac
  ;;
reviewer)
  hash=$(grep -oE '^APPROVED [0-9a-f]{64}' "$PAWL_PROMPT" | cut -d' ' -f2)
  if grep -q 'IV, XC' src/roman.awk; then
    echo "APPROVED $hash"
    echo "- [x] 1: test.sh has them all"
    echo "- [x] 2: 3 and 8 are in test.sh too"
    echo "- [x] 3: the comment at the top says it"
  else
    echo "REJECTED $hash: nothing says why IV is in the list"
  fi
  ;;
esac

# This agent is a script. pawl asks it twice in an iteration: first for an idea, then for the change.
# It reports the cost of each call, so pawl can keep the budget.
cat >/dev/null
case $PAWL_ITERATION in
1) idea="add es after a hiss" rule='/[sx]$/s/$/e/
/[cs]h$/s/$/e/' ;;
2) idea="turn y into ies after a consonant" rule='s/\([^aeiou]\)y$/\1ie/' ;;
3) idea="turn f into ves" rule='s/fe*$/ve/' ;;
esac
if [ "$PAWL_PHASE" = ideate ]; then
  printf '{"idea": "%s", "costUSD": 0.01}\n' "$idea" >"$PAWL_RESULT"
  exit
fi
{ printf '%s\n' "$rule"; cat src/plural.sed; } >src/rules && cat src/rules >src/plural.sed && rm src/rules
printf '{"description": "%s", "toolCalls": 1, "inputTokens": 900, "outputTokens": 60, "costUSD": 0.015}\n' "$idea" >"$PAWL_RESULT"

#!/bin/sh
# The agents of `pawl demo deliver`, a role each. There is no model behind them and nothing random
# in them: what one does depends on its role alone, so that a call that is repeated after a crash is
# the same call. It runs at the root of the desk.
set -eu

# say writes what pawl asks an agent for: one sentence, and how much it cost.
say() {
  printf '{"description": "%s", "toolCalls": 3}\n' "$1" >"$PAWL_RESULT"
}

# change edits the calendar.
change() {
  sed "$1" interval/interval.go >interval/changed
  mv interval/changed interval/interval.go
}

# tick answers an acceptance criterion by a test that shows it: run here, not taken on trust.
tick() {
  if go test -count=1 -run "^$2\$" ./interval >/dev/null 2>&1; then
    echo "- [x] $1: $2 passes"
  else
    echo "- [ ] $1: $2 fails"
    decision=REJECTED
  fi
}

case $PAWL_ROLE in
planner)
  cat <<'PLAN'
1. `interval.Merge` takes the end of whichever meeting comes last. Within a longer one that is too
   early: leave such a meeting out.
2. Nothing else changes: `Free` goes by what `Merge` says.
3. It is done when TestMergeKeepsTheLongerOne and TestFreeOffersNothingDuringALongMeeting pass and
   no other test fails.
PLAN
  say "a plan" ;;
writer) # mends the bug and loses something else: meetings that only touch
  change 's/next.Start <= /next.Start < /; s/End = next.End/End = max(merged[n-1].End, next.End)/'
  say "leave out what lies within a longer meeting" ;;
fixer)
  change 's/next.Start < /next.Start <= /'
  say "join meetings that touch, up to the later end" ;;
reviewer)
  decision=APPROVED
  ticks=$(mktemp)
  {
    tick 1 TestMergeKeepsTheLongerOne
    tick 2 TestFreeOffersNothingDuringALongMeeting
    tick 3 TestMergeJoinsWhatTouches
  } >"$ticks"
  cat "$ticks"
  rm "$ticks"
  sed -n "s/^\($decision [0-9a-f]*\).*/\1: every criterion was tried on the desk/p" "$PAWL_PROMPT" | head -n 1 ;;
esac

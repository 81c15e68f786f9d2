#!/bin/sh
# The agents of `pawl demo steward`: a planner and a writer. There is no model behind them and nothing
# random in them: what one does depends on its task, its loop and its iteration alone, so that a call
# that is repeated after a crash is the same call. It runs at the root of the desk.
set -eu
here=$(dirname "$0")

# say writes what pawl asks an agent for: one sentence, and how much it cost.
say() {
  printf '{"description": "%s", "toolCalls": 1}\n' "$1" >"$PAWL_RESULT"
}

if [ "$PAWL_ROLE" = planner ]; then
  cp "$here/plans/$PAWL_TASK.md" "$PAWL_PLAN"
  exit
fi

# shorten puts a shorter line in the place of one.
shorten() {
  sed "s/^$1:.*/$1: $2/" pages/menu.md >"$PAWL_RESULT.new"
  cat "$PAWL_RESULT.new" >pages/menu.md
  rm "$PAWL_RESULT.new"
  say "say less about the $1"
}

case $PAWL_LOOP in
*-hours-write)
  echo "Open from 8 to 18." >>pages/home.md
  say "say when we are open" ;;
*-tea-write)
  echo "tea,2.50" >>prices/list.csv
  say "put tea on the price list" ;;
*-closed-write)
  echo "Closed today: the oven is broken." >pages/today.md
  say "say that we are closed" ;;
*-menu-shorten)
  case $PAWL_ITERATION in
  1) shorten Cake "another one every day." ;;
  2) sleep 1 && shorten Coffee "with or without milk." ;;
  *) sleep 1 && shorten Soup "at noon." ;;
  esac ;;
*-headline-shorten) # whatever it is told, it has the same idea again
  echo "Welcome to the Corner Café." >>pages/home.md
  say "welcome the guests" ;;
esac

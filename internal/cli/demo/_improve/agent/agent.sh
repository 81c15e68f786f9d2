#!/bin/sh
# The agent of `pawl demo`. There is no model behind it and nothing random in it: what it does
# depends on the iteration and the attempt alone, so that an attempt that is repeated after a
# crash is the same attempt. It runs at the root of the desk; the changes lie beside it.
set -eu
changes=$(dirname "$0")

# say writes what pawl asks an agent for: one sentence, and how much it cost.
say() {
  printf '{"description": "%s", "toolCalls": 3}\n' "$1" >"$PAWL_RESULT"
}

# before is the first change, with a statement before each step of the tour.
before() {
  sed "s|^.*append(tour, next)|$1; &|" "$changes/01/construct.go" >route/construct.go
}

case $PAWL_ITERATION.$PAWL_ATTEMPT in
1.*)
  cp "$changes/01/construct.go" route/construct.go
  say "go on from each city to the nearest one not yet visited" ;;
2.*)
  cp "$changes/02/construct.go" route/construct.go
  say "visit the cities from west to east" ;;
3.1) # shorter, but not a round trip through every city: the guard finds out, three times
  before 'if Distance(cities[here], cities[next]) > 800 { break }'
  say "leave out the cities that lie too far away" ;;
3.2)
  before 'if cities[next].Lat > 63 { visited[next] = true; tour = append(tour, here); continue }'
  say "stop over nearby instead of in the far north" ;;
3.*)
  before 'if len(tour) == len(cities)-1 { break }'
  say "leave the last city for another trip" ;;
4.*)
  cp "$changes/04/improve.go" route/improve.go
  say "uncross legs that cross (2-opt)" ;;
5.*) # off by one: it panics
  sed 's/j < n; j++/j <= n; j++/' "$changes/04/improve.go" >route/improve.go
  say "uncross the leg that leads home as well" ;;
6.*) # fewer cities, shorter trip: but the map is not in scope
  head -n 60 data/cities.csv >data/cities.short
  mv data/cities.short data/cities.csv
  say "shorten the list of cities" ;;
7.*)
  cp "$changes/07/improve.go" route/improve.go
  say "move short chains of cities to where they fit better (Or-opt)" ;;
8.1) # two changes in one, and again when asked for one
  sed 's/size <= 3/size <= 2/' "$changes/07/improve.go" >route/improve.go
  printf '\n// The long legs are skipped.\n' >>route/construct.go
  say "move chains of at most two cities and skip the long legs" ;;
8.*)
  sed 's/size <= 3/size <= 4/' "$changes/07/improve.go" >route/improve.go
  printf '\n// The longest leg comes first.\n' >>route/construct.go
  say "move chains of up to four cities and begin with the longest" ;;
9.*)
  say "look for legs that still cross" ;; # there are none, so there is nothing to change
10.*)
  cp "$changes/10/plan.go" route/plan.go
  say "begin at every tenth city in turn, keep the shortest tour" ;;
*)
  say "nothing left to try" ;;
esac

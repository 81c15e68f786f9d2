# Reports in TAP which numbers are right.
echo 1..6
n=0 bad=0
for pair in 3:III 8:VIII 4:IV 9:IX 40:XL 1994:MCMXCIV; do
  n=$((n + 1))
  got=$(echo "${pair%:*}" | awk -f src/roman.awk)
  if [ "$got" = "${pair#*:}" ]; then
    echo "ok $n - ${pair%:*} is ${pair#*:}"
  else
    echo "not ok $n - ${pair%:*} is ${pair#*:}"
    echo "# it writes $got"
    bad=1
  fi
done
exit $bad

# Writes each number of the input as a Roman one, sign by sign.
BEGIN { n = split("1000 M 500 D 100 C 50 L 10 X 9 IX 8 IIX 5 V 4 IV 1 I", sign) }
{
  text = ""
  for (i = 1; i < n; i += 2)
    for (; $1 >= sign[i]; $1 -= sign[i]) text = text sign[i + 1]
  print text
}

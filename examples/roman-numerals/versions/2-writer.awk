# Writes each number of the input as a Roman one. A smaller sign before a larger one (IV, XC) is a sign of its own.
BEGIN { n = split("1000 M 900 CM 500 D 400 CD 100 C 90 XC 50 L 40 XL 10 X 9 IX 5 V 4 IV 1 I", sign) }
{
  text = ""
  for (i = 1; i < n; i += 2)
    for (; $1 >= sign[i]; $1 -= sign[i]) text = text sign[i + 1]
  print text
}

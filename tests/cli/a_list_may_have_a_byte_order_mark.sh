. "$(dirname "$0")/lib.subr"

cp "$FIXTURES/good/a.png" .
printf '\357\273\277path,label\r\na.png,1\r\n' >spreadsheet.csv
expect 0 classify --target "$FIXTURES/tiny" --data list:spreadsheet.csv
says "of 1 images"
printf '\357\273\277a.png,1\n' >plain.csv
expect 0 classify --target "$FIXTURES/tiny" --data list:plain.csv
says "of 1 images"

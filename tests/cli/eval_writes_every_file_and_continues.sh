. "$(dirname "$0")/lib.subr"

mkdir photos && cp "$FIXTURES/good/a.png" photos/a.png && cp "$FIXTURES/good/b.jpg" photos/b.jpg
printf 'path,label\nphotos/a.png,1\nphotos/b.jpg,2\n' > list.csv
expect 0 eval --target "$FIXTURES/tiny" --data list:list.csv --methods random,chefer --class both --out first --timing-runs 1
grep -q "^chefer " out || fail "expected a row of chefer"
for file in results.json results.csv per_image.csv table.md table.tex curves.csv curves.svg curves.png report.html rows.jsonl; do
  [ -s "first/$file" ] || fail "expected first/$file"
done
for file in results.csv per_image.csv curves.csv; do
  twice=$(head -1 "first/$file" | tr , '\n' | sort | uniq -d)
  [ -z "$twice" ] || fail "expected unique column names in $file, found twice: $twice"
done
grep -q overwritten err && fail "expected nothing to be overwritten in a new folder"
[ "$(wc -l <first/per_image.csv)" -eq 9 ] || fail "expected 2 images x 2 methods x 2 classes and a header"

# The same call finds everything done; one more image and method do not change the old figures.
expect 0 eval --target "$FIXTURES/tiny" --data list:list.csv --methods chefer --class both --out second --limit 1
expect 0 eval --target "$FIXTURES/tiny" --data list:list.csv --methods random,chefer --class both --out second --timing-runs 1 --batch-size 3
cmp first/per_image.csv second/per_image.csv || fail "expected the same figures after an interruption"
expect 0 eval --target "$FIXTURES/tiny" --data list:list.csv --methods random,chefer --class both --out second --json
says '"target_evaluations": 0'
grep -q "second: overwritten: results.json" err || fail "expected the overwritten files to be named"
# Every second image of a sorted list; a folder of rows extends to the others.
expect 0 eval --target "$FIXTURES/tiny" --data list:list.csv --methods chefer --skip 1 --every 2 --out third --timing-runs 0
grep -q 'photos/b.jpg' third/per_image.csv && ! grep -q 'photos/a.png' third/per_image.csv || fail "expected the second image alone"
refuses "--every" eval --target "$FIXTURES/tiny" --data list:list.csv --methods chefer --every 0 --out third
expect 0 eval --target "$FIXTURES/tiny" --data list:list.csv --methods random --out second --protocol equations --timing-runs 0
grep -q "2 rows are made again" err || fail "expected a word on rows of other settings"

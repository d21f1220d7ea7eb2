. "$(dirname "$0")/lib.subr"

# Twelve images are two batches: one for each of two processes, and the same figures.
mkdir photos && for i in 1 2 3 4 5 6; do cp "$FIXTURES/good/a.png" photos/a$i.png; cp "$FIXTURES/good/b.jpg" photos/b$i.jpg; done
(echo path,label; for f in photos/*; do echo "$f,1"; done) > list.csv
call="eval --target $FIXTURES/tiny --data list:list.csv --methods random,chefer --metrics ins-del,adp --class both --timing-runs 0"
expect 0 $call --out alone
expect 0 $call --workers 2 --out shared
[ -s shared/rows.jsonl ] && [ -s shared/rows.1.jsonl ] || fail "expected the rows of two workers"
cmp alone/per_image.csv shared/per_image.csv || fail "expected the same figures for any split"
cmp alone/results.csv shared/results.csv || fail "expected the same table for any split"
# One process continues what two began.
expect 0 $call --out shared --json
says '"target_evaluations": 0'
# An image that cannot be read is named, whoever met it.
echo nothing > photos/bad.png && echo photos/bad.png,1 >> list.csv
expect 1 $call --workers 2 --out shared
grep -q bad.png shared/table.md || fail "expected the image that cannot be read in the table"

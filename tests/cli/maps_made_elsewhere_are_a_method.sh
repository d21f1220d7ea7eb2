. "$(dirname "$0")/lib.subr"

mkdir photos && cp "$FIXTURES/good/a.png" photos/a.png && cp "$FIXTURES/good/b.jpg" photos/b.jpg
printf 'photos/a.png,1\nphotos/b.jpg,2\n' > list.csv
expect 0 explain --target "$FIXTURES/tiny" --method gradient --no-score --out theirs/gradient photos

# The map that explain wrote is the map of the method.
expect 0 explain --target "$FIXTURES/tiny" --method maps:theirs/gradient --no-score --out again photos
cmp -s theirs/gradient/a.map.npy again/a.map.npy || fail "expected the same map"
expect 0 eval --target "$FIXTURES/tiny" --data list:list.csv --methods gradient,maps:theirs/gradient,inverted:maps:theirs/gradient --timing-runs 0 --out results
grep -q "^maps:gradient " out || fail "expected a row"
grep -q "^inverted:maps:gradient " out || fail "expected a row"
gradient=$(sed -n 's/^| gradient | //p' results/table.md | cut -d'[' -f1) maps=$(sed -n 's/^| maps:gradient | //p' results/table.md | cut -d'[' -f1)
[ "$gradient" = "$maps" ] || fail "expected the same figures, found $gradient and $maps"
expect 0 compare --target "$FIXTURES/tiny" --methods maps:theirs/gradient:blur=2,random:cell=8 --out sheets photos/a.png
says "maps:gradient:blur=2"

# A missing map is named; eval goes on without that image.
rm theirs/gradient/b.map.npy
refuses "b.npy" explain --target "$FIXTURES/tiny" --method maps:theirs/gradient --no-score --out again photos/b.jpg
expect 1 eval --target "$FIXTURES/tiny" --data list:list.csv --methods maps:theirs/gradient --timing-runs 0 --out results
says "1 of 2 images"
says "b.npy"
refuses "expected a folder" eval --target "$FIXTURES/tiny" --data list:list.csv --methods maps:nowhere --out results
refuses "maps:FOLDER" eval --target "$FIXTURES/tiny" --data list:list.csv --methods maps --out results

# A constant map is said, not hidden.
printf '\223NUMPY\001\000\166\000%-117s\n\007' "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1), }" > theirs/gradient/b.npy
expect 0 compare --target "$FIXTURES/tiny" --methods maps:theirs/gradient --out sheets photos/b.jpg
grep -q "constant" err || fail "expected a warning of the constant map"
expect 0 eval --target "$FIXTURES/tiny" --data list:list.csv --methods maps:theirs/gradient --timing-runs 0 --out results
says "constant maps: 1 of 2"

. "$(dirname "$0")/lib.subr"

mkdir photos && cp "$FIXTURES/good/a.png" photos/a.png && cp "$FIXTURES/good/b.jpg" photos/b.jpg
printf 'path,label\nphotos/a.png,1\nphotos/b.jpg,2\n' > list.csv
eval="eval --target $FIXTURES/tiny --data list:list.csv --methods random,gradient --timing-runs 0 --images 0"

# Metrics and references are the protocol's.
expect 0 $eval --protocol chefer --out chefer
says "neg-pos ↑"
grep -q "mean over black$" out || fail "expected one reference"
grep -q '"area": "inner"' chefer/results.json || fail "expected the area rule in the settings"
expect 0 $eval --protocol rise --out rise
says "deletion on gray, insertion on blur"
grep -q 'neg-pos' rise/results.csv && fail "expected the metrics of the protocol alone"

# Flags and NAME:key=value win; both ways give the same figures.
expect 0 $eval --protocol rise --steps 7 --ties index --references black,blur --blur-kind gaussian --blur-kernel 5 --blur-sigma 2 --out flags
expect 0 $eval --protocol rise:steps=7:ties=index:references=black,blur:deletion-references=black,blur:insertion-references=black,blur:blur=gaussian:blur-kernel=5:blur-sigma=2 --out spec
cmp flags/per_image.csv spec/per_image.csv || fail "expected the same figures from flags and from the protocol's options"
cmp -s flags/per_image.csv rise/per_image.csv && fail "expected other figures than the protocol's own"
expect 0 $eval --protocol rise --area mean_k --metrics deletion --out area
[ "$(head -1 area/per_image.csv)" = "image,method,class,deletion" ] || fail "expected one metric"

# A protocol may choose images; the others are counted and are no failure.
expect 0 $eval --protocol paper:most-images=1 --out one
says "1 of 2 images"
says "not chosen: enough images"

refuses "steps = 10" eval --target "$FIXTURES/tiny" --data list:list.csv --methods random --steps 7 --out refused
refuses "normalized" eval --target "$FIXTURES/tiny" --data list:list.csv --methods random --area normal --out refused
refuses "most-images" eval --target "$FIXTURES/tiny" --data list:list.csv --methods random --protocol paper:most-imagez=1 --out refused

. "$(dirname "$0")/lib.subr"

photo="$FIXTURES/good/a.png"
printf 'path,mask,x0,y0,x1,y1\n%s,%s,4,4,20,20\n' "$photo" "$photo" > objects.csv
expect 0 eval --target "$FIXTURES/tiny" --data list:objects.csv --methods random --metrics seg-miou,pointing,energy --timing-runs 0 --out results
grep -q "seg-miou" results/table.md || fail "expected a column seg-miou"
grep -q "energy" results/per_image.csv || fail "expected a column energy"

printf 'path,label\n%s,1\n' "$photo" > plain.csv
refuses "which seg-miou looks at, found none" eval --target "$FIXTURES/tiny" --data list:plain.csv --methods random --metrics seg-miou --out other
refuses "no label" eval --target "$FIXTURES/tiny" --data list:objects.csv --methods random --class truth --out other
refuses "no label" classify --target "$FIXTURES/tiny" --data list:objects.csv
printf 'path,x0\n%s,4\n' "$photo" > half.csv
refuses "x0,y0,x1,y1" data info list:half.csv
refuses "nowhere.mat" data info imagenet-seg:nowhere.mat
refuses "MATLAB 7.3" data info "imagenet-seg:plain.csv"

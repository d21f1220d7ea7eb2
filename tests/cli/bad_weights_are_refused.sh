. "$(dirname "$0")/lib.subr"

refuses "no_such" classify --target no_such "$FIXTURES/good/a.png"
refuses "vit_x_16" classify --target vit_x_16:"$FIXTURES/tiny/model.safetensors" "$FIXTURES/good/a.png"
head -c 1000 "$FIXTURES/tiny/model.safetensors" > cut.safetensors
refuses "cut.safetensors" classify --target vit_ti_16:cut.safetensors "$FIXTURES/good/a.png"
refuses "cut.safetensors" inspect cut.safetensors
printf "\377\377\377\377\377\377\377\177{}" > huge.safetensors
refuses "huge.safetensors" inspect huge.safetensors
printf "\200\002cos\nsystem\nX\004\000\000\000echo\205R." > evil.pth
refuses "evil.pth" inspect evil.pth
cp -r "$FIXTURES/tiny" typo && sed -i "s/\"architecture\"/\"architectur\"/" typo/model.json
refuses "architectur" classify --target typo "$FIXTURES/good/a.png"
cp -r "$FIXTURES/tiny" changed && printf "\001" | dd of=changed/model.safetensors bs=1 seek=4000 conv=notrunc 2>/dev/null
refuses "sha256" classify --target changed "$FIXTURES/good/a.png"

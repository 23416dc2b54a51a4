.PHONY: build
build:
	go build -o bin/weft ./cmd/weft

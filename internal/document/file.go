package document

import (
	"fmt"
	"io"
	"os"
)

// most is the largest file that is read whole, in bytes.
const most = 64 << 20

// ReadFile reads a file of at most 64 MiB, so an endless device does not
// exhaust memory.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadFrom(f, path)
}

// ReadFrom is ReadFile for an open file; errors call it name.
func ReadFrom(r io.Reader, name string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && len(text) > most {
		return nil, fmt.Errorf("%s: more than %d octets; give a smaller file", name, most)
	}
	return text, err
}

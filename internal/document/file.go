package document

import (
	"fmt"
	"io"
	"os"
)

// most is how many octets a file may have that is read whole.
const most = 64 << 20

// ReadFile reads a file of at most 64 MiB: a device that never ends does not take
// all memory.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadFrom(f, path)
}

// ReadFrom is ReadFile for what is open already, which errors call name.
func ReadFrom(r io.Reader, name string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && len(text) > most {
		return nil, fmt.Errorf("%s: more than %d octets; give a smaller file", name, most)
	}
	return text, err
}

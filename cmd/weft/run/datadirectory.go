package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/asowner"
)

// madeDirectories are the directories that a start has made, by their whole paths, the
// outermost first.
type madeDirectories []string

// makeDataDirectory makes the directory of the durable state, if it is not there, and those
// above it, and returns what it has made, with an error, too.
func makeDataDirectory(dir string) (made madeDirectories, err error) {
	dir, err = filepath.Abs(dir)
	for path := dir; err == nil; path = filepath.Dir(path) {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = append(made, path)
	}
	slices.Reverse(made)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(dir), 0o755) // who runs the controller passes here
	}
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		err = fmt.Errorf("directory of the durable state: %w; name another with --data-dir", err)
	}
	return made, err
}

// removeEmpty removes those directories in which there is nothing: of a controller that was
// refused, nothing is left, such as an owner of its data directory.
func (m madeDirectories) removeEmpty() {
	for _, path := range slices.Backward(m) {
		_ = asowner.Do(filepath.Dir(path), func() error { return unix.Rmdir(path) }) // with anything in it, it stays
	}
}

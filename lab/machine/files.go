package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/wholefile"
)

// ReplaceFile writes a file that others read: they see the one that was, or the
// whole new one. The one that was stays if it fails.
func ReplaceFile(path string, b []byte, mode os.FileMode) error {
	return ExplainNoRoom(path, wholefile.Write(path, b, mode))
}

// WriteSynced writes a file, and returns once it is stored.
func WriteSynced(path string, b []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return ExplainNoRoom(path, err)
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return ExplainNoRoom(path, errors.Join(err, f.Close()))
}

// ExplainNoRoom says of an error that a file was not written by whether there is no room.
func ExplainNoRoom(path string, err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: make room where %s is", err, filepath.Dir(path))
	}
	return err
}

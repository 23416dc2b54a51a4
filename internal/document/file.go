package document

import (
	"io"

	"github.com/weft-sdn/weft/internal/asowner"
)

// ReadFile reads a file that people name; see asowner.ReadFile.
func ReadFile(path string) ([]byte, error) { return asowner.ReadFile(path) }

// ReadFrom is ReadFile for an open file; errors call it name.
func ReadFrom(r io.Reader, name string) ([]byte, error) { return asowner.ReadFrom(r, name) }

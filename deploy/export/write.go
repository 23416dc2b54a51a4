package export

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/internal/asowner"
)

// Force says whether files of a directory that is not empty may be replaced.
type Force bool

// Write writes the files below a directory, which it makes. A directory that
// is not empty is an error without force; with it, files of the same names are
// replaced, all others stay.
func Write(dir string, files []File, force Force) error {
	var list []fs.DirEntry
	err := asowner.Do(dir, func() (err error) { list, err = os.ReadDir(dir); return err })
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("directory %s: %w", dir, err)
	case len(list) > 0 && !bool(force):
		return fmt.Errorf("directory %s is not empty (%s is in it); choose another with --dir, or replace the files in it with --force", dir, list[0].Name())
	}
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := asowner.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("write the export: %w", err)
		}
		if err := asowner.WriteFile(name, f.Data, 0o644); err != nil {
			return fmt.Errorf("write the export: %w", err)
		}
	}
	return nil
}

// sorted returns files by path.
func sorted(files []File) []File {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files
}

// below returns files in a folder.
func below(folder string, files []File) []File {
	list := make([]File, len(files))
	for i, f := range files {
		list[i] = File{path.Join(folder, f.Path), f.Data}
	}
	return list
}

// checksums returns the file with the MD5 sums of all others that OSM's
// packages have, in md5sum's form.
func checksums(files []File) File {
	var b bytes.Buffer
	for _, f := range sorted(slices.Clone(files)) {
		fmt.Fprintf(&b, "%x  %s\n", md5.Sum(f.Data), f.Path)
	}
	return File{"checksums.txt", b.Bytes()}
}

// archive packs files as a tar.gz without times and owners, so that the same
// files give the same archive.
func archive(name string, files []File) (File, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	for _, f := range sorted(slices.Clone(files)) {
		h := &tar.Header{Name: f.Path, Mode: 0o644, Size: int64(len(f.Data)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		err := t.WriteHeader(h)
		if err == nil {
			_, err = t.Write(f.Data)
		}
		if err != nil {
			return File{}, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return File{}, fmt.Errorf("pack %s: %w", name, err)
	}
	return File{name, b.Bytes()}, nil
}

package supervisor

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// tailMost is how much of the end of a log Tail reads, in bytes.
const tailMost = 1 << 20

// LogPath returns the log of a process that a supervisor with a directory keeps.
func LogPath(directory, name string) string { return filepath.Join(directory, name+".log") }

// Tail returns the last lines of the log of a process, oldest first: those of
// at most a megabyte. If there is no log, the error is fs.ErrNotExist.
func Tail(directory, name string, lines int) ([]string, error) {
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("%q is no name of a process", name)
	}
	path := LogPath(directory, name)
	text, err := endOf(path, tailMost)
	if err != nil {
		return nil, err
	}
	list := split(text)
	if len(list) < lines && len(text) < tailMost {
		if before, err := endOf(path+".1", tailMost-len(text)); err == nil {
			list = append(split(before), list...)
		}
	}
	return list[max(0, len(list)-lines):], nil
}

// endOf returns the end of a file, from the beginning of a line.
func endOf(path string, most int) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	from := max(0, size-int64(most))
	text := make([]byte, size-from)
	n, err := f.ReadAt(text, from)
	if err != nil && err != io.EOF { // the file may have been truncated meanwhile
		return "", err
	}
	whole := string(text[:n])
	if from > 0 {
		_, whole, _ = strings.Cut(whole, "\n")
	}
	return whole, nil
}

func split(text string) []string {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

package keeper

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// mostLog bounds what is kept of what a program writes: between half of it and
// all of it, in two files, of which the older ends in ".1".
const mostLog = 1 << 20

// programLog is the log of a program. What cannot be written is dropped, so
// that a full disk does not stop the program.
type programLog struct {
	path string

	mu   sync.Mutex // guards what follows
	file *os.File
	size int
}

func openLog(path string) (*programLog, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make a program's log: %w", err)
	}
	l := &programLog{path: path}
	return l, l.open()
}

func (l *programLog) open() (err error) {
	if l.file, err = os.OpenFile(l.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644); err != nil {
		return fmt.Errorf("make a program's log: %w", err)
	}
	l.size = 0
	return nil
}

func (l *programLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+len(b) > mostLog/2 && os.Rename(l.path, l.path+".1") == nil {
		old := l.file
		if err := l.open(); err != nil {
			l.file = old
		} else {
			old.Close()
		}
	}
	if l.size+len(b) <= mostLog/2 {
		n, _ := l.file.Write(b)
		l.size += n
	}
	return len(b), nil
}

func (l *programLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}

// LogReader reads the log of a program, and what is added to it.
type LogReader struct {
	path string
	file *os.File // nil: nothing was read yet
}

// Read reads on. It returns io.EOF at the end of what is there now.
func (r *LogReader) Read(b []byte) (int, error) {
	for {
		next := r.next() // asked for first: nothing is added any more to a file that has a next one
		n, err := 0, io.EOF
		if r.file != nil {
			n, err = r.file.Read(b)
		}
		switch {
		case n > 0 || err != io.EOF:
			if next != nil {
				next.Close()
			}
			return n, err
		case next == nil:
			return 0, io.EOF
		}
		r.Close()
		r.file = next
	}
}

// next opens the file that follows the one being read; nil if there is none.
func (r *LogReader) next() *os.File {
	newest, err := os.Open(r.path)
	if err != nil {
		return nil
	}
	if same(newest, r.file) {
		newest.Close()
		return nil
	}
	older, err := os.Open(r.path + ".1")
	if err != nil {
		return newest
	}
	if same(older, r.file) {
		older.Close()
		return newest
	}
	newest.Close()
	return older
}

func same(a, b *os.File) bool {
	if a == nil || b == nil {
		return false
	}
	one, err := a.Stat()
	if err != nil {
		return false
	}
	other, err := b.Stat()
	return err == nil && os.SameFile(one, other)
}

// Close ends reading.
func (r *LogReader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// NewLogReader returns a reader of the log at a path.
func NewLogReader(path string) *LogReader { return &LogReader{path: path} }

// LastWords returns the last line that the program has written; empty if there is none.
func (r *LogReader) LastWords() string {
	b, err := io.ReadAll(r)
	if err != nil {
		return ""
	}
	lines := strings.Split(string(b), "\n")
	for _, line := range slices.Backward(lines) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, noteMark) {
			return line
		}
	}
	return ""
}

// noteMark begins the lines of a log that the program did not write.
const noteMark = "[weft lab] "

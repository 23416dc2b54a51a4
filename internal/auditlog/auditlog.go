// Package auditlog records what clients change: one JSON object per line, in
// files that only their owner can read. The services that accept changes import
// it; it imports the standard library only.
package auditlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Suffix ends the names of the files: NAME.jsonl, and NAME.1.jsonl, NAME.2.jsonl
// and so on, which are older.
const Suffix = ".jsonl"

// Log writes lines to a file. It rotates a full file and removes the oldest
// ones. Set its fields before first use; its methods may be called from any
// goroutine.
type Log struct {
	Dir    string      // empty: nothing is written
	Name   string      // of the file; other writers use other names
	Size   int64       // of a file, bytes
	Files  int         // number of files kept
	Failed func(error) // called for a line that was not written

	mu      sync.Mutex // guards what follows
	file    *os.File
	written int64
}

// Record is one line.
type Record struct {
	Time    time.Time       `json:"time"`
	Who     string          `json:"who"`
	Role    string          `json:"role"`
	From    string          `json:"from"`
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request"`
	Result  string          `json:"result"`
	Error   string          `json:"error,omitempty"`
	TookUS  int64           `json:"took_us"`
}

// Open makes the directory and the file.
func (l *Log) Open() error {
	if l.Dir == "" {
		return nil
	}
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reopen()
}

// path returns the path of a file; 0 is the current one.
func (l *Log) path(n int) string {
	if n == 0 {
		return filepath.Join(l.Dir, l.Name+Suffix)
	}
	return filepath.Join(l.Dir, fmt.Sprintf("%s.%d%s", l.Name, n, Suffix))
}

// reopen opens the current file; mu is held.
func (l *Log) reopen() error {
	f, err := os.OpenFile(l.path(0), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("audit log: %w", err), f.Close())
	}
	l.file, l.written = f, info.Size()
	last := make([]byte, 1)
	if l.written > 0 { // end a line that a crash cut off
		if _, err := f.ReadAt(last, l.written-1); err == nil && last[0] != '\n' {
			if n, err := f.Write([]byte("\n")); err == nil {
				l.written += int64(n)
			}
		}
	}
	return nil
}

// rotate renames the file and begins another; mu is held.
func (l *Log) rotate() error {
	err := l.file.Close()
	l.file = nil
	for n := l.Files - 1; n > 0; n-- {
		if e := os.Rename(l.path(n-1), l.path(n)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if l.Files == 1 {
		err = errors.Join(err, os.Remove(l.path(0)))
	}
	return errors.Join(err, l.reopen())
}

// Add writes a line. If that fails, it calls Failed, because the change is
// already made.
func (l *Log) Add(r *Record) {
	if l.Dir == "" {
		return
	}
	line, err := json.Marshal(r)
	if err != nil {
		l.Failed(err)
		return
	}
	line = append(line, '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		err = l.reopen()
	} else if l.written > 0 && l.written+int64(len(line)) > l.Size {
		err = l.rotate()
	}
	if err == nil {
		var n int
		n, err = l.file.Write(line)
		l.written += int64(n)
	}
	if err != nil {
		l.Failed(err)
	}
}

// Close closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}

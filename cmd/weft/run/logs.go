package run

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/weft-sdn/weft/deploy/supervisor"
)

// Bounds of what a process remembers of its log.
const (
	keptLines = 1000
	keptLine  = 4 << 10 // bytes of one
)

// keptLog passes a log on and remembers its end.
type keptLog struct {
	to        io.Writer
	process   string
	directory string // of the supervisor of this machine's processes; empty for none

	mu    sync.Mutex // guards what follows
	lines []string   // a ring once it is full
	next  int        // where the next line goes in a full ring
}

// Write passes a record on and remembers it.
func (l *keptLog) Write(p []byte) (int, error) {
	line := string(bytes.TrimSuffix(p[:min(len(p), keptLine)], []byte("\n")))
	l.mu.Lock()
	if len(l.lines) < keptLines {
		l.lines = append(l.lines, line)
	} else {
		l.lines[l.next] = line
		l.next = (l.next + 1) % keptLines
	}
	l.mu.Unlock()
	return l.to.Write(p)
}

// read returns the last lines of the log of this process, or of another that
// the supervisor of this machine has kept.
func (l *keptLog) read(process string, lines int) ([]string, error) {
	if process != l.process || l.supervised() {
		return supervisor.Tail(l.directory, process, lines)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := append(append(make([]string, 0, len(l.lines)), l.lines[l.next:]...), l.lines[:l.next]...)
	var list []string
	for _, line := range all[max(0, len(all)-lines):] {
		list = append(list, strings.Split(line, "\n")...)
	}
	return list[max(0, len(list)-lines):], nil
}

// supervised reports whether what this process writes to stderr goes to the
// log that the supervisor keeps of it: it has panics and earlier runs, too.
func (l *keptLog) supervised() bool {
	file, err := os.Stat(supervisor.LogPath(l.directory, l.process))
	if err != nil {
		return false
	}
	own, err := os.Stderr.Stat()
	return err == nil && os.SameFile(file, own)
}

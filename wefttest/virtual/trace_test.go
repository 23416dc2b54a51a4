package virtual

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"os"
	"sync"
	"time"
)

// trace is what has happened, as one number: every message between switches and
// processes, every call and its answer, every operation of the store, every frame that
// a host receives, and the entries of all switches at the end of each storm, in order,
// with their times.
type trace struct {
	mu      sync.Mutex // guards what follows
	now     uint64
	count   int
	lines   io.Writer      // nil: nobody reads it
	against *bufio.Scanner // lines of another run of the seed; nil: none
	recent  [50]event      // the last ones, count modulo their number
}

// event is one of them.
type event struct {
	at   time.Duration
	what string
	data []byte
}

func (e event) String() string { return fmt.Sprintf("%.9f %s %x", e.at.Seconds(), e.what, e.data) }

func (t *trace) add(what string, data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := event{time.Since(epoch), what, data}
	t.now = mix(mixAll(mixAll(t.now, []byte(what)), data), uint64(e.at))
	last := &t.recent[t.count%len(t.recent)]
	*last = event{e.at, what, append(last.data[:0], data[:min(len(data), 200)]...)}
	t.count++
	if t.lines != nil {
		fmt.Fprintln(t.lines, e)
	}
	if t.against == nil {
		return
	}
	if line := []byte(e.String()); !t.against.Scan() || !bytes.Equal(t.against.Bytes(), line) {
		fmt.Printf("event %d is another:\n%s\n%s\n", t.count, t.against.Bytes(), line)
		os.Exit(1)
	}
}

func mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^0x9e3779b97f4a7c15, v^0xe7037ed1a0b428db)
	return hi ^ lo + h
}

func mixAll(h uint64, b []byte) uint64 {
	h = mix(h, uint64(len(b)))
	for ; len(b) >= 8; b = b[8:] {
		h = mix(h, binary.LittleEndian.Uint64(b))
	}
	var rest [8]byte
	copy(rest[:], b)
	return mix(h, binary.LittleEndian.Uint64(rest[:]))
}

func (t *trace) sum() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

// latest returns the last events, oldest first, one a line.
func (t *trace) latest() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b bytes.Buffer
	for i := max(0, t.count-len(t.recent)); i < t.count; i++ {
		e := t.recent[i%len(t.recent)]
		fmt.Fprintf(&b, "%12.6f %s %q\n", e.at.Seconds(), e.what, e.data)
	}
	return b.String()
}

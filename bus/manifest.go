package bus

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// content is a manifest's record of a live key.
type content struct {
	revision uint64
	digest   string
}

// digestOf returns a digest of a value.
func digestOf(value []byte) string {
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:8])
}

// manifest is the file that lists the content of a bucket: a line for every
// change, in the order of revisions, each with its own checksum. Lines are
// written at once and synced later, so after a crash of the machine it may lack
// the last changes, never earlier ones. One goroutine uses it.
type manifest struct {
	path    string
	file    *os.File
	last    uint64 // highest revision in it
	lines   int    // in the file
	compact int    // number of lines at which the file is rewritten
	dirty   bool   // not synced
}

// record is a manifest as read from its file.
type record struct {
	live    map[string]content
	last    uint64
	lines   int
	written time.Time // of the last line, approximately
	reports []string  // damage that others have found
	fault   string    // why the file is unreliable; empty if it is reliable
	missing bool
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// line returns a line of a manifest.
func line(payload string) string {
	return fmt.Sprintf("%08x %s\n", crc32.Checksum([]byte(payload), castagnoli), payload)
}

func headOf(bucket string) string { return "weft manifest 1 " + bucket }

// readManifest reads a file. It ignores an incomplete last line, which a crash
// has cut short.
func readManifest(path, bucket string) (record, error) {
	r := record{live: map[string]content{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		r.missing = true
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if info, err := os.Stat(path); err == nil {
		r.written = info.ModTime()
	}
	data = bytes.TrimRight(data, "\x00")
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	for text := range strings.Lines(string(data)) {
		r.lines++
		text = strings.TrimSuffix(text, "\n")
		sum, payload, _ := strings.Cut(text, " ")
		if sum != fmt.Sprintf("%08x", crc32.Checksum([]byte(payload), castagnoli)) {
			r.fault = fmt.Sprintf("line %d of its manifest %s is damaged", r.lines, path)
			return r, nil
		}
		if r.lines == 1 {
			if payload != headOf(bucket) {
				r.fault = fmt.Sprintf("%s is not its manifest, or one of another version", path)
				return r, nil
			}
			continue
		}
		if err := r.take(payload); err != nil {
			r.fault = fmt.Sprintf("line %d of its manifest %s: %v", r.lines, path, err)
			return r, nil
		}
	}
	if r.lines == 0 {
		r.fault = fmt.Sprintf("its manifest %s is empty", path)
	}
	return r, nil
}

// take adds the payload of one line.
func (r *record) take(payload string) error {
	words := strings.Split(payload, " ")
	if words[0] == "!" {
		r.reports = append(r.reports, strings.TrimPrefix(payload, "! "))
		return nil
	}
	if len(words) < 3 {
		return fmt.Errorf("%q is cut short", payload)
	}
	revision, err := strconv.ParseUint(words[1], 10, 64)
	if err != nil {
		return err
	}
	r.last = max(r.last, revision)
	switch {
	case words[0] == "+" && len(words) == 4:
		r.live[words[3]] = content{revision, words[2]}
	case words[0] == "-" && len(words) == 3:
		delete(r.live, words[2])
	case words[0] == "@" && len(words) == 3: // the revision of the bucket
	default:
		return fmt.Errorf("%q is not known to this version", payload)
	}
	return nil
}

// writeManifest replaces a file as a whole, syncs it, and opens it.
func writeManifest(path, bucket string, live map[string]content, last uint64) (*manifest, error) {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriter(f)
	fmt.Fprint(w, line(headOf(bucket)), line(fmt.Sprintf("@ %d -", last)))
	for key, c := range live {
		fmt.Fprint(w, line(fmt.Sprintf("+ %d %s %s", c.revision, c.digest, key)))
	}
	err = errors.Join(w.Flush(), f.Sync())
	if err == nil {
		err = os.Rename(next, path)
	}
	if err == nil {
		err = syncDirectory(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	lines := len(live) + 2
	return &manifest{path: path, file: f, last: last, lines: lines, compact: 2*lines + 4096}, nil
}

// openManifest opens a manifest for appending, after it was read. It cuts off an
// unfinished record that a crash left at the end.
func openManifest(path string, r record) (*manifest, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	m := &manifest{path: path, file: f, last: r.last, lines: r.lines, compact: 2*len(r.live) + 4096}
	end, err := endOfLines(f)
	if err == nil {
		err = f.Truncate(end)
	}
	if err == nil {
		_, err = f.Seek(end, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return m, nil
}

// endOfLines returns the end offset of the last complete line of a file.
func endOfLines(f *os.File) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 4096)
	for at := size; at > 0; {
		n := min(int64(len(buf)), at)
		at -= n
		if _, err := f.ReadAt(buf[:n], at); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
	}
	return 0, nil
}

// syncDirectory makes a rename in a directory durable.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// add records a change, unless the file already has it.
func (m *manifest) add(e entry) error {
	if e.revision <= m.last {
		return nil
	}
	if e.value != nil {
		e.value = []byte(digestOf(e.value))
	}
	return m.note(e)
}

// note writes an entry whose value is a digest.
func (m *manifest) note(e entry) error {
	text := fmt.Sprintf("- %d %s", e.revision, e.key)
	if e.value != nil {
		text = fmt.Sprintf("+ %d %s %s", e.revision, e.value, e.key)
	}
	if err := m.write(text); err != nil {
		return err
	}
	m.last = e.revision
	return nil
}

// catchUp records what the bucket has and the manifest lacks.
func (m *manifest) catchUp(h holding) error {
	var later []entry
	for _, e := range h.last {
		if e.revision > m.last {
			later = append(later, e)
		}
	}
	slices.SortFunc(later, func(a, b entry) int { return cmp.Compare(a.revision, b.revision) })
	for _, e := range later {
		if err := m.note(e); err != nil {
			return err
		}
	}
	return nil
}

// report records damage that others have found.
func (m *manifest) report(reason string) error {
	if err := m.write("! " + strings.Join(strings.Fields(reason), " ")); err != nil {
		return err
	}
	return m.sync()
}

// write adds a line.
func (m *manifest) write(payload string) error {
	if _, err := m.file.WriteString(line(payload)); err != nil {
		return err
	}
	m.lines++
	m.dirty = true
	return nil
}

// sync makes all lines durable.
func (m *manifest) sync() error {
	if !m.dirty {
		return nil
	}
	m.dirty = false
	return m.file.Sync()
}

func (m *manifest) close() error { return errors.Join(m.sync(), m.file.Close()) }

package store

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/asowner"
)

// backupHead is the first line of a backup, and backupLineMost bounds a line.
const (
	backupHead     = "weft store backup 1"
	backupLineMost = 32 << 20
)

// backupEntry is one line of a backup: a key of a bucket.
type backupEntry struct {
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
	Value  []byte `json:"value"`
}

// backupEnd is the last line: how many there are, and a digest of all before.
type backupEnd struct {
	Entries int    `json:"entries"`
	SHA256  string `json:"sha256"`
}

// backupWriter writes a backup.
type backupWriter struct {
	w       *bufio.Writer
	sum     hash.Hash
	entries int
}

func newBackupWriter(w io.Writer) (*backupWriter, error) {
	b := &backupWriter{sum: sha256.New()}
	b.w = bufio.NewWriter(io.MultiWriter(w, b.sum))
	_, err := fmt.Fprintln(b.w, backupHead)
	return b, err
}

func (b *backupWriter) add(bucket string, e *api.StoreEntry) error {
	b.entries++
	return json.NewEncoder(b.w).Encode(backupEntry{bucket, e.Key, e.Value})
}

// end writes the last line.
func (b *backupWriter) end() error {
	if err := b.w.Flush(); err != nil {
		return err
	}
	err := json.NewEncoder(b.w).Encode(backupEnd{b.entries, hex.EncodeToString(b.sum.Sum(nil))})
	return errors.Join(err, b.w.Flush())
}

// readBackup reads a backup, checked as a whole, and returns the entries of each
// bucket.
func readBackup(file string) (map[string][]*api.StoreEntry, error) {
	f, err := asowner.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 1<<16), backupLineMost)
	if !lines.Scan() || lines.Text() != backupHead {
		return nil, fmt.Errorf("%s is not a backup that weft store backup has written", file)
	}
	sum := sha256.New()
	fmt.Fprintln(sum, backupHead)
	buckets, n := map[string][]*api.StoreEntry{}, 0
	for lines.Scan() {
		if bytes.HasPrefix(lines.Bytes(), []byte(`{"entries":`)) {
			var end backupEnd
			if err := json.Unmarshal(lines.Bytes(), &end); err != nil || end.Entries != n || end.SHA256 != hex.EncodeToString(sum.Sum(nil)) {
				break
			}
			return buckets, nil
		}
		var e backupEntry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n+2, err)
		}
		fmt.Fprintf(sum, "%s\n", lines.Bytes())
		buckets[e.Bucket] = append(buckets[e.Bucket], &api.StoreEntry{Key: e.Key, Value: e.Value})
		n++
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return nil, fmt.Errorf("%s is cut short or damaged: its digest does not fit; use another backup", file)
}

package object

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// Log writes several values at once: all or none, whenever its process ends. It
// writes a record of them first, to the journal, and removes it when they are
// written; the next process to start writes what is missing. Buckets are those of one
// service. One goroutine at a time uses it.
type Log struct {
	journal Bucket
	buckets map[string]Bucket // by name; the journal's own is one of them
	pending bool              // a record may be there that is not settled
	failed  map[string]bool   // records of this process whose writes are to be taken back
}

// changePrefix is that of the keys of the journal. No object has such a name.
const changePrefix = "=change/"

// undoWithin bounds how long a change is undone that has failed.
const undoWithin = 10 * time.Second

func (l *Log) records() Journal { return Journal{l.journal, changePrefix} }

// Journaled reports whether a key of a bucket belongs to a log, not to the service.
func Journaled(key string) bool { return len(key) > 0 && key[0] == changePrefix[0] }

// A Write is a value to be written over a known one; nil is none.
type Write struct {
	Bucket   string `json:"bucket,omitempty"`
	Key      string `json:"key"`
	Before   []byte `json:"before"`
	After    []byte `json:"after"`
	Over     uint64 `json:"over,omitempty"` // the revision of Before; 0: none
	Revision uint64 `json:"-"`              // of After, once it is written
}

// recordHead is the head of a record.
type recordHead struct {
	// Whether its parts are still being written: it is no record yet.
	Open bool `json:"open,omitempty"`
	// Whether Before is to be written, not After.
	Undo  bool `json:"undo,omitempty"`
	Parts int  `json:"parts,omitempty"`
	// The writes, if they need no parts.
	Writes json.RawMessage `json:"writes,omitempty"`
}

// A Conflict is an error: somebody else has written over a value meanwhile.
type Conflict struct {
	Write    *Write
	Value    []byte // that is there; nil: none
	Revision uint64
}

func (c *Conflict) Error() string { return c.Write.Key + " has been changed meanwhile" }

// errTaken says that another instance has finished or undone a change.
var errTaken = errors.New("another instance of the service has taken over, and finished it or undone it")

// Write writes values, and sets their revisions: all, or none if it fails. If the
// store does not answer it may be unknown which, until Settle says so.
func (l *Log) Write(ctx context.Context, list []Write) error {
	if err := l.Settle(ctx, nil); err != nil {
		return err
	}
	if len(list) == 1 {
		if err := l.put(ctx, &list[0]); err != nil && !errors.As(err, new(*Conflict)) {
			return unknownOutcome(err)
		} else if err != nil {
			return err
		}
		return nil
	}
	name := rand.Text()
	head, revision, err := l.begin(ctx, name, list)
	if err != nil {
		return l.giveUp(ctx, name, head.Parts, err)
	}
	for i := range list {
		if err := l.put(ctx, &list[i]); err != nil {
			return l.undo(ctx, name, head, revision, list[:i+1], err)
		}
	}
	if err := l.records().Remove(ctx, name, head.Parts); err != nil {
		l.pending = true // all is written; the record is removed later
	}
	return nil
}

// begin writes the record. Without an error it is certain that all is written.
func (l *Log) begin(ctx context.Context, name string, list []Write) (head recordHead, revision uint64, err error) {
	text, err := json.Marshal(list)
	if err != nil {
		return head, 0, err
	}
	if len(text) <= JournalPart {
		head.Writes = text
		revision, err = l.putHead(ctx, name, head, 0)
		return head, revision, err
	}
	if revision, err = l.putHead(ctx, name, recordHead{Open: true}, 0); err != nil {
		return head, 0, err
	}
	for ; len(text) > 0; head.Parts++ {
		part := text[:min(len(text), JournalPart)]
		if err = l.records().PutPart(ctx, name, head.Parts, part); err != nil {
			head.Parts++
			return head, 0, err
		}
		text = text[len(part):]
	}
	revision, err = l.putHead(ctx, name, head, revision)
	return head, revision, err
}

// putHead writes a head over the given revision.
func (l *Log) putHead(ctx context.Context, name string, h recordHead, over uint64) (uint64, error) {
	value, err := json.Marshal(h)
	if err != nil {
		return 0, err
	}
	return l.journal.Update(ctx, l.records().headKey(name), value, over)
}

// giveUp removes a record that may or may not have been written.
func (l *Log) giveUp(ctx context.Context, name string, parts int, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
	defer cancel()
	if err := l.records().Remove(ctx, name, parts); err != nil {
		l.markFailed(name)
		return unknownOutcome(cause)
	}
	return cause
}

// markFailed marks a change of this process as failed, because its caller got an
// error. Settle then undoes it, while another process would finish it.
func (l *Log) markFailed(name string) {
	if l.pending = true; l.failed == nil {
		l.failed = map[string]bool{}
	}
	l.failed[name] = true
}

// unknownOutcome returns the error of a change that may or may not have been made.
func unknownOutcome(cause error) error {
	return api.Errorf(codes.Unavailable, "the store does not answer, and whether all is written or none is seen when it does: %w", cause)
}

// put makes a write, unless it is made already.
func (l *Log) put(ctx context.Context, w *Write) error {
	b := l.buckets[w.Bucket]
	revision, err := replace(ctx, b, w.Key, w.After, w.Over)
	if !errors.Is(err, weft.ErrRevision) {
		w.Revision = revision
		return err
	}
	value, revision, err := b.Get(ctx, w.Key)
	switch {
	case err != nil:
		return err
	case equalValues(value, w.After):
		w.Revision = revision
		return nil
	}
	return &Conflict{w, value, revision}
}

// equalValues reports whether two values are equal; nil means no value.
func equalValues(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// undo writes again what was there before, as far as it is there no more.
func (l *Log) undo(ctx context.Context, name string, head recordHead, revision uint64, done []Write, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
	defer cancel()
	l.markFailed(name)
	head.Undo = true
	if _, err := l.putHead(ctx, name, head, revision); errors.Is(err, weft.ErrRevision) {
		return errTaken
	} else if err != nil {
		return unknownOutcome(cause)
	}
	if err := l.finish(ctx, head, done); err != nil {
		return unknownOutcome(cause)
	}
	if err := l.records().Remove(ctx, name, head.Parts); err == nil {
		l.pending, l.failed = false, nil
	}
	return cause
}

// finish makes the writes of a record that are not made, or takes back those that
// are. What somebody else has written since stays.
func (l *Log) finish(ctx context.Context, head recordHead, list []Write) error {
	for i := range list {
		w, to := &list[i], list[i].After
		if head.Undo {
			w = &list[len(list)-1-i]
			to = w.Before
		}
		b := l.buckets[w.Bucket]
		if b == nil {
			return fmt.Errorf("a change is of a %q, which the service does not have", w.Bucket)
		}
		for err := weft.ErrRevision; errors.Is(err, weft.ErrRevision); {
			value, revision, bad := b.Get(ctx, w.Key)
			if bad != nil {
				return bad
			}
			if err = nil; w.isOpen(head.Undo, value, revision) {
				if _, err = replace(ctx, b, w.Key, to, revision); err != nil && !errors.Is(err, weft.ErrRevision) {
					return err
				}
			}
		}
	}
	return nil
}

// isOpen reports whether a write must still be made, or undone, if its bucket has
// the given value.
func (w *Write) isOpen(undo bool, value []byte, revision uint64) bool {
	if undo {
		return equalValues(value, w.After) && !equalValues(value, w.Before)
	}
	return !equalValues(value, w.After) && (revision == w.Over && w.Over != 0 || equalValues(value, w.Before))
}

// Settle finishes or takes back what an earlier run, or a call that failed, has left
// half done. settled may be nil; it is called for each value concerned.
func (l *Log) Settle(ctx context.Context, settled func(bucket, key string)) error {
	if !l.pending {
		return nil
	}
	unfinished := func(err error) error {
		return api.Errorf(codes.Unavailable, "an earlier change is not finished: %w", err)
	}
	if err := l.dropOpen(ctx); err != nil {
		return unfinished(err)
	}
	list, err := l.records().Load(ctx, func(name string, value []byte) (int, error) {
		h, err := readHead(name, value)
		return h.Parts, err
	})
	if err != nil {
		return unfinished(err)
	}
	for _, r := range list {
		if err := l.settle(ctx, r, settled); err != nil {
			return unfinished(err)
		}
	}
	l.pending, l.failed = false, nil
	return nil
}

func readHead(name string, value []byte) (h recordHead, err error) {
	if err = json.Unmarshal(value, &h); err != nil {
		err = fmt.Errorf("change %s: %w", name, err)
	}
	return h, err
}

// dropOpen drops records of which not all parts are written. Their heads go before
// their parts, so that nobody can complete them.
func (l *Log) dropOpen(ctx context.Context) error {
	open := map[string]uint64{}
	err := l.journal.All(ctx, func(key string, value []byte, revision uint64) error {
		name, isHead := l.records().recordOf(key)
		if !isHead {
			return nil
		}
		h, err := readHead(name, value)
		if h.Open {
			open[name] = revision
		}
		return err
	})
	for name, revision := range open {
		if err != nil {
			return err
		}
		if _, err = l.putHead(ctx, name, recordHead{Open: true}, revision); err == nil {
			err = l.journal.Delete(ctx, l.records().headKey(name))
		}
	}
	return err
}

// settle settles one record. It writes the head first: its writer, if it is still
// there, replaces that only over the revision that it has written, and so goes on no
// more.
func (l *Log) settle(ctx context.Context, r Record, settled func(bucket, key string)) error {
	h, err := readHead(r.Name, r.Head)
	if err != nil {
		return err
	}
	h.Undo = h.Undo || l.failed[r.Name]
	if _, err := l.putHead(ctx, r.Name, h, r.Revision); err != nil {
		return err
	}
	text := []byte(h.Writes)
	for _, p := range r.Parts {
		text = append(text, p...)
	}
	var writes []Write
	if err := json.Unmarshal(text, &writes); err != nil {
		return fmt.Errorf("change %s: %w", r.Name, err)
	}
	if err := l.finish(ctx, h, writes); err != nil {
		return err
	}
	for i := range writes {
		if settled != nil {
			settled(writes[i].Bucket, writes[i].Key)
		}
	}
	return l.records().Remove(ctx, r.Name, h.Parts)
}

// replace writes a value over the given revision; nil deletes it.
func replace(ctx context.Context, b Bucket, key string, value []byte, revision uint64) (uint64, error) {
	if value != nil {
		return b.Update(ctx, key, value, revision)
	}
	there, is, err := b.Get(ctx, key)
	if err != nil || there == nil {
		return 0, err
	}
	if is != revision {
		return 0, weft.ErrRevision
	}
	return 0, b.Delete(ctx, key)
}

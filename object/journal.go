package object

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Journal keeps records in a bucket: what a service is about to write, so that its
// next run can finish it. A record is there once its head is, which is written
// after its parts; it is gone once its head is, which is deleted before them.
type Journal struct {
	Store  JournalStore
	Prefix string // of its keys; the bucket may have others
}

// JournalStore is what a Journal needs of a bucket.
type JournalStore interface {
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
	Delete(ctx context.Context, key string) error
	All(ctx context.Context, f func(key string, value []byte, revision uint64) error) error
}

// JournalPart is how many octets a part should have at most. A store takes a few
// times as many.
const JournalPart = 256 << 10

// A Record is a record of a journal.
type Record struct {
	Name     string
	Head     []byte
	Revision uint64 // of the head
	Parts    [][]byte
}

const headSuffix = "/head"

func (j Journal) headKey(name string) string { return j.Prefix + name + headSuffix }
func (j Journal) partKey(name string, n int) string {
	return fmt.Sprintf("%s%s/part/%d", j.Prefix, name, n)
}

// recordOf returns the name of the record whose head a key is.
func (j Journal) recordOf(key string) (name string, isHead bool) {
	if name, isHead = strings.CutPrefix(key, j.Prefix); isHead {
		name, isHead = strings.CutSuffix(name, headSuffix)
	}
	return name, isHead
}

// PutPart writes the n-th part of a record, from 0.
func (j Journal) PutPart(ctx context.Context, name string, n int, value []byte) error {
	_, err := j.Store.Put(ctx, j.partKey(name, n), value)
	return err
}

// PutHead writes the head of a record, or replaces it.
func (j Journal) PutHead(ctx context.Context, name string, head []byte) error {
	_, err := j.Store.Put(ctx, j.headKey(name), head)
	return err
}

// Remove removes a record with so many parts.
func (j Journal) Remove(ctx context.Context, name string, parts int) error {
	if err := j.Store.Delete(ctx, j.headKey(name)); err != nil {
		return err
	}
	return j.RemoveParts(ctx, name, parts)
}

// RemoveParts removes the parts of a record.
func (j Journal) RemoveParts(ctx context.Context, name string, parts int) error {
	for n := range parts {
		if err := j.Store.Delete(ctx, j.partKey(name, n)); err != nil {
			return err
		}
	}
	return nil
}

// Load returns the records, in the order in which their heads were last written,
// and deletes the parts of others. It calls parts for how many the head of each says
// that there are, in the same order; a missing one is an error.
func (j Journal) Load(ctx context.Context, parts func(name string, head []byte) (int, error)) ([]Record, error) {
	var list []Record
	all := map[string][]byte{}
	if err := j.Store.All(ctx, func(key string, value []byte, revision uint64) error {
		if name, isHead := j.recordOf(key); isHead {
			list = append(list, Record{Name: name, Head: bytes.Clone(value), Revision: revision})
		} else if strings.HasPrefix(key, j.Prefix) {
			all[key] = bytes.Clone(value)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b Record) int { return cmp.Compare(a.Revision, b.Revision) })
	for i := range list {
		r := &list[i]
		want, err := parts(r.Name, r.Head)
		if err != nil {
			return nil, err
		}
		for n := range want {
			value, ok := all[j.partKey(r.Name, n)]
			if !ok {
				return nil, fmt.Errorf("%s in the store: part %d of %d is missing", r.Name, n+1, want)
			}
			delete(all, j.partKey(r.Name, n))
			r.Parts = append(r.Parts, value)
		}
	}
	for key := range all { // of records that never were, or are gone
		if err := j.Store.Delete(ctx, key); err != nil {
			return nil, err
		}
	}
	return list, nil
}

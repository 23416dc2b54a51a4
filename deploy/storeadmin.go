package deploy

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bus"
)

// partMost is the most bytes in one part of a bucket that ReadStore returns.
const partMost = 1 << 20

// checkedStore is a Store that can detect that it has lost data.
type checkedStore interface {
	Damages() []bus.Damage
	DamageChanged() <-chan struct{}
}

// keptStore is a Store that can be inspected as a whole, and repaired.
type keptStore interface {
	checkedStore
	Buckets(ctx context.Context) ([]string, error)
	Bucket(ctx context.Context, name string) (weft.Bucket, error)
	Fill(ctx context.Context, bucket string, entries iter.Seq2[string, []byte]) (filled int, err error)
	Accept(ctx context.Context, bucket string) error
	Trouble() string
}

// StoreAdmin inspects a store as a whole, reads it for backups, and repairs it.
type StoreAdmin struct {
	store keptStore

	mu   sync.Mutex // guards what follows
	name string     // of the bucket that is being read
	list []*api.StoreEntry
}

// NewStoreAdmin returns the StoreAdmin of a store.
func NewStoreAdmin(store *bus.Store) *StoreAdmin { return &StoreAdmin{store: store} }

// none is the error of a store that cannot be inspected.
func (h *StoreAdmin) none() error {
	if h == nil {
		return api.Errorf(codes.FailedPrecondition, "the durable state of this controller cannot be looked at")
	}
	return nil
}

// GetStore returns the state of the buckets. It writes nothing.
func (h *StoreAdmin) GetStore(ctx context.Context, _ *api.GetStoreRequest) (*api.StoreStatus, error) {
	if err := h.none(); err != nil {
		return nil, err
	}
	names, err := h.store.Buckets(ctx)
	if err != nil {
		return nil, err
	}
	m := &api.StoreStatus{Trouble: h.store.Trouble()}
	for _, name := range names {
		m.Buckets = append(m.Buckets, &api.BucketStatus{Name: name})
	}
	for _, d := range h.store.Damages() {
		i, found := slices.BinarySearchFunc(m.Buckets, d.Bucket, func(b *api.BucketStatus, name string) int { return cmp.Compare(b.Name, name) })
		if !found {
			m.Buckets = slices.Insert(m.Buckets, i, &api.BucketStatus{Name: d.Bucket})
		}
		b := m.Buckets[i]
		b.Damage, b.Lost, b.ReadOnly, b.Since = d.Reason, uint32(d.Lost), !d.Writable, d.Found.UTC().Format(time.RFC3339)
	}
	return m, nil
}

// ReadStore reads a part of a bucket. All parts show the moment of the first
// request, unless another bucket is read meanwhile.
func (h *StoreAdmin) ReadStore(ctx context.Context, req *api.ReadStoreRequest) (*api.ReadStoreResponse, error) {
	if err := h.none(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if req.After == "" || h.name != req.Bucket {
		if err := h.read(ctx, req.Bucket); err != nil {
			return nil, err
		}
	}
	i, found := slices.BinarySearchFunc(h.list, req.After, func(e *api.StoreEntry, key string) int { return cmp.Compare(e.Key, key) })
	if found {
		i++
	}
	m := &api.ReadStoreResponse{}
	for size := 0; i < len(h.list) && size < partMost; i++ {
		m.Entries = append(m.Entries, h.list[i])
		size += len(h.list[i].Key) + len(h.list[i].Value)
	}
	m.More = i < len(h.list)
	if !m.More {
		h.name, h.list = "", nil
	}
	return m, nil
}

// read reads a bucket. The caller holds mu.
func (h *StoreAdmin) read(ctx context.Context, name string) error {
	names, err := h.store.Buckets(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(names, name) {
		return api.Errorf(codes.NotFound, "there is no bucket %.80q; weft store status lists them", name)
	}
	b, err := h.store.Bucket(ctx, name)
	if err != nil {
		return err
	}
	h.name, h.list = name, nil
	err = b.All(ctx, func(key string, value []byte, _ uint64) error {
		h.list = append(h.list, &api.StoreEntry{Key: key, Value: value})
		return nil
	})
	slices.SortFunc(h.list, func(a, b *api.StoreEntry) int { return cmp.Compare(a.Key, b.Key) })
	return err
}

// RepairStore repairs a damaged bucket.
func (h *StoreAdmin) RepairStore(ctx context.Context, req *api.RepairStoreRequest) (*api.RepairStoreResponse, error) {
	if err := h.none(); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(h.store.Damages(), func(d bus.Damage) bool { return d.Bucket == req.Bucket }) {
		return nil, api.Errorf(codes.FailedPrecondition, "bucket %.80q is not damaged; weft store status lists those that are", req.Bucket)
	}
	m := &api.RepairStoreResponse{}
	filled, err := h.store.Fill(ctx, req.Bucket, func(yield func(string, []byte) bool) {
		for _, e := range req.Entries {
			if !yield(e.Key, e.Value) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	m.Filled = uint32(filled)
	if req.Accept {
		if err := h.store.Accept(ctx, req.Bucket); err != nil {
			return nil, err
		}
	}
	return m, nil
}

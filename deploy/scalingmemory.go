package deploy

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
)

// ScalingBucket holds what was decided about replicas last, and what was measured for that, so
// that it outlives the process that decides.
const ScalingBucket = "deploy.scaling"

const (
	scalingKey   = "state"
	scalingSaves = time.Minute // how often that is written, apart from decisions
)

// scalingMemory keeps the state of a process that decides about replicas. Only the scaling loop
// uses it.
type scalingMemory struct {
	store  local.Store
	bucket weft.Bucket // nil: it has not been read yet
	saved  time.Time   // when it was written last
	said   string      // why it could not be read, as the log says
}

// read returns what earlier processes have decided and measured; nil after the first time. If it
// cannot be read, it is to be called again.
func (m *scalingMemory) read(ctx context.Context) (*api.GetScalingResponse, error) {
	if m.bucket != nil {
		return nil, nil
	}
	b, err := m.store.Bucket(ctx, ScalingBucket)
	if err != nil {
		return nil, err
	}
	value, _, err := b.Get(ctx, scalingKey)
	if err != nil {
		return nil, err
	}
	m.bucket, m.saved = b, time.Now()
	kept := &api.GetScalingResponse{}
	return kept, proto.Unmarshal(value, kept)
}

// due reports whether it is time to write.
func (m *scalingMemory) due() bool { return m.bucket != nil && time.Since(m.saved) >= scalingSaves }

// write keeps a state.
func (m *scalingMemory) write(ctx context.Context, state *api.GetScalingResponse) error {
	m.saved = time.Now()
	value, err := proto.Marshal(state)
	if err == nil {
		_, err = m.bucket.Put(ctx, scalingKey, value)
	}
	return err
}

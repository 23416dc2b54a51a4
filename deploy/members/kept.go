package members

import (
	"context"
	"encoding/json"

	"github.com/weft-sdn/weft/deploy/local"
)

// KeeperBucket holds the supervisor's report on each of its processes.
const KeeperBucket = "deploy.supervisor"

// Kept is the supervisor's report on a process.
type Kept struct {
	State     string // starting, up, unresponsive, backing-off, stopped
	PID       int
	Restarts  int
	LastExit  string
	Unapplied []string
}

// Tell writes the supervisor's reports on its processes.
func (d *Directory) Tell(ctx context.Context, store local.Store, process string, k *Kept) error {
	bucket, err := store.Bucket(ctx, KeeperBucket)
	if err != nil {
		return err
	}
	if k == nil {
		return bucket.Delete(ctx, process)
	}
	data, err := json.Marshal(k)
	if err == nil {
		_, err = bucket.Put(ctx, process, data)
	}
	return err
}

// ReadKept reads the supervisor's reports.
func ReadKept(ctx context.Context, store local.Store) (map[string]Kept, error) {
	bucket, err := store.Bucket(ctx, KeeperBucket)
	if err != nil {
		return nil, err
	}
	list := map[string]Kept{}
	err = bucket.All(ctx, func(key string, value []byte, _ uint64) error {
		var k Kept
		if json.Unmarshal(value, &k) == nil {
			list[key] = k
		}
		return nil
	})
	return list, err
}

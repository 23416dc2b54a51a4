package deploy

import (
	"context"
	"slices"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/deploy/members"
)

// Rebuilt returns a function that reports whether services or processes learn
// or write the content of a bucket anew, so that it may be written to even if
// damaged.
func Rebuilt(specs []weft.Spec) func(bucket string) bool {
	list := []string{members.PlanBucket, members.WorkersBucket, members.KeeperBucket}
	for _, s := range specs {
		for _, b := range s.Rebuilt {
			list = append(list, s.Name+"."+b)
		}
	}
	return func(bucket string) bool {
		return slices.ContainsFunc(list, func(b string) bool { return bucket == b || strings.HasSuffix(bucket, "."+b) })
	}
}

// followRepairs restarts services whose buckets were repaired, because they
// read only part of the data before. Services with replicas follow their
// buckets, so they do not restart.
func (n *Node) followRepairs(ctx context.Context) {
	store, ok := n.config.Store.(checkedStore)
	if !ok {
		return
	}
	var before []bus.Damage
	for {
		changed := store.DamageChanged()
		now := store.Damages()
		for _, d := range before {
			if d.Writable || slices.ContainsFunc(now, func(e bus.Damage) bool { return e.Bucket == d.Bucket }) {
				continue
			}
			for _, s := range n.worker.Running().Services {
				name, own := strings.CutPrefix(d.Bucket, s.Prefix+s.Spec.Name+".")
				if own && slices.Contains(s.Spec.Buckets, name) && s.Spec.Scale != weft.Any {
					n.log.Info("service is started again, because its state was repaired", "service", s.Spec.Name, "bucket", d.Bucket)
					s.Stale.Store(true)
					n.reconciler.changed.Notify()
				}
			}
		}
		before = now
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

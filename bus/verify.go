package bus

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// holding is the content of a bucket: the last entry of each key, including
// markers of deleted keys, the highest revision of those, and the highest
// revision that the bucket has assigned.
type holding struct {
	last    map[string]entry // values are digests
	lost    bool             // something is unreadable
	seen    uint64
	reached uint64
}

// live returns the present keys, as a manifest lists them.
func (h holding) live() map[string]content {
	live := map[string]content{}
	for key, e := range h.last {
		if e.value != nil {
			live[key] = content{e.revision, string(e.value)}
		}
	}
	return live
}

// hold reads a bucket and returns the feed, which continues with changes.
func (b *bucket) hold(ctx context.Context) (*feed, holding, error) {
	h := holding{last: map[string]entry{}}
	f, err := b.open(ctx)
	if err != nil {
		return nil, h, err
	}
	for {
		e, more, err := f.first(ctx)
		if err != nil {
			f.close()
			return nil, h, err
		}
		if !more {
			break
		}
		if e.value != nil {
			e.value = []byte(digestOf(e.value))
		}
		h.last[e.key] = e
		h.seen = max(h.seen, e.revision)
	}
	info, err := (*b.stream.Load()).Info(ctx)
	if err != nil {
		f.close()
		return nil, h, err
	}
	h.reached, h.lost = max(h.seen, info.State.LastSeq), f.lost
	return f, h, nil
}

// namesMost is the most keys that the reason of a damage names.
const namesMost = 3

// compare says what a bucket lacks of its manifest; "" if nothing. A crash may
// have cut off the last lines of a manifest, so a bucket may hold more than it
// lists. It may also have deleted keys since, whose markers have expired by
// now; each deletion used a revision that no entry holds.
func compare(r record, h holding, now time.Time) (reason string, lost int) {
	var missing, older, other, revived []string
	for key, c := range r.live {
		e, there := h.last[key]
		switch {
		case !there:
			missing = append(missing, key)
		case e.revision < c.revision:
			older = append(older, key)
		case e.revision == c.revision && (e.value == nil || string(e.value) != c.digest):
			other = append(other, key)
		}
	}
	unseen := uint64(0)
	for key, e := range h.last {
		if e.revision > r.last {
			unseen++
		} else if _, listed := r.live[key]; !listed && e.value != nil {
			revived = append(revived, key)
		}
	}
	if n := uint64(len(missing)); n > 0 && h.reached >= r.last+unseen+n && now.Sub(r.written) > markerLife {
		missing = nil // deleted since then
	}
	var faults []string
	for _, f := range []struct {
		keys []string
		what string
	}{
		{missing, "are missing"}, {older, "are older than they were"}, {other, "hold another value"}, {revived, "had been deleted, or come from elsewhere"},
	} {
		if len(f.keys) > 0 {
			slices.Sort(f.keys)
			faults = append(faults, fmt.Sprintf("%d of %d keys %s (%s)", len(f.keys), len(r.live), f.what, some(f.keys)))
		}
	}
	return strings.Join(faults, ", "), len(missing) + len(older) + len(other)
}

// some names the first few of many keys.
func some(keys []string) string {
	if len(keys) > namesMost {
		return strings.Join(keys[:namesMost], ", ") + ", …"
	}
	return strings.Join(keys, ", ")
}

package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// tags are the VLAN identifiers of packets on their way to ports of functions and,
// with port 0, to switches. They are kept, so that packets between switches go where
// they should while the entries of an earlier run are replaced.
type tags struct {
	cfg   *Config
	guard *object.Guard // guards the following
	kept  *object.Store[*tag]
	used  map[uint16]flow.Location
	last  uint16 // that was given; the next ones are tried first
	short int    // how many have none, because none is free

	changed bool // since the entries were declared
}

// A tag is that of a port, or of a switch.
type tag struct {
	said *api.ChainTag // as stored; read-only
	at   flow.Location
	tag  uint16
}

func newTags(guard *object.Guard, cfg *Config, kept object.Bucket, bad func(name string, err error)) *tags {
	t := &tags{cfg: cfg, guard: guard, used: map[uint16]flow.Location{}}
	t.kept = object.New(guard, kept, object.Kind[*tag]{
		What: "tag", Many: "tags", Most: func() int { return 4094 },
		Name:    func(g *tag) string { return nameOf(g.at) },
		Format:  object.Messages(parseTag, func(g *tag) *api.ChainTag { return g.said }),
		Changed: t.noted, Bad: bad,
	})
	return t
}

func nameOf(at flow.Location) string { return fmt.Sprintf("%v-%d", at.Switch, uint32(at.Port)) }

func parseTag(m *api.ChainTag) (*tag, error) {
	if m.GetTag() < 1 || m.Tag > 4094 {
		return nil, api.Errorf(codes.InvalidArgument, "tag %d: want 1 to 4094", m.GetTag())
	}
	return &tag{m, m.GetAt().Flow(), uint16(m.Tag)}, nil
}

// noted takes over a change.
func (t *tags) noted(old, now *tag) {
	if old != nil && t.used[old.tag] == old.at {
		delete(t.used, old.tag)
	}
	if now != nil {
		t.used[now.tag] = now.at
		t.last = max(t.last, now.tag)
	}
	t.changed = true
}

// of returns the tag of a place; false if it has none, or none that is allowed. It is called with the guard held.
func (t *tags) of(at flow.Location) (uint16, bool) {
	g := t.kept.Get(nameOf(at))
	if g == nil || !t.allowed(g.tag) || t.used[g.tag] != at {
		return 0, false
	}
	return g.tag, true
}

func (t *tags) allowed(tag uint16) bool { return tag >= t.cfg.FirstTag && tag <= t.cfg.LastTag }

// list returns the tags in use, in order. It is called with the guard held.
func (t *tags) list() (list []*tag) {
	for g := range t.kept.All() {
		if _, ok := t.of(g.at); ok {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *tag) int { return cmp.Compare(a.tag, b.tag) })
	return list
}

// compare returns which places have no tag but need one, and which need none but have
// one. It is called with the guard held.
func (t *tags) compare(needed map[flow.Location]bool) (missing, idle []flow.Location) {
	for at := range needed {
		if _, ok := t.of(at); !ok {
			missing = append(missing, at)
		}
	}
	for g := range t.kept.All() {
		if !needed[g.at] {
			idle = append(idle, g.at)
		}
	}
	t.short = 0
	order := func(a, b flow.Location) int {
		return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Port, b.Port))
	}
	slices.SortFunc(missing, order)
	slices.SortFunc(idle, order)
	return missing, idle
}

// give gives a place a tag, if one is free.
func (t *tags) give(ctx context.Context, at flow.Location) error {
	_, _, err := t.kept.Change(ctx, nameOf(at), func(*tag) (*tag, error) {
		free, ok := t.free()
		if !ok {
			t.short++
			return nil, errShort
		}
		t.last = free
		return &tag{&api.ChainTag{At: api.NewLocation(at), Tag: uint32(free)}, at, free}, nil
	})
	if errors.Is(err, errShort) {
		return nil // the chains say so
	}
	return err
}

var errShort = errors.New("no tag is free")

func (t *tags) take(ctx context.Context, at flow.Location) error {
	_, err := t.kept.Remove(ctx, nameOf(at))
	return err
}

// rest returns how many tags nobody has. It is called with the guard held.
func (t *tags) rest() int {
	n := int(t.cfg.LastTag-t.cfg.FirstTag) + 1
	for tag := range t.used {
		if t.allowed(tag) {
			n--
		}
	}
	return n
}

// free returns a tag that nobody has, of those that were in use last the oldest.
func (t *tags) free() (uint16, bool) {
	at := t.last
	for range t.cfg.LastTag - t.cfg.FirstTag + 1 {
		if at++; !t.allowed(at) {
			at = t.cfg.FirstTag
		}
		if _, used := t.used[at]; !used {
			return at, true
		}
	}
	return 0, false
}

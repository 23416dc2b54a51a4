package discovery

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The bounds of what the operator may say of links.
const (
	settingsMax   = 10_000 // links
	coloursMax    = 63     // in the network: paths have a bit for each, and one for those that no link has
	riskGroupsMax = 32     // of a link
	capacityMax   = 1_000_000_000_000
	delayMax      = 10_000_000
)

// settings stores what the operator says of links.
type settings struct {
	store store
	e     *engine

	mu sync.Mutex // one call at a time
}

// load restores what earlier runs stored.
func (s *settings) load(ctx context.Context) error {
	return s.store.All(ctx, func(key string, value []byte, _ uint64) error {
		p, err := parsePair(strings.NewReplacer(".", ":", "-", " ").Replace(key))
		m := &api.LinkSettings{}
		if err == nil {
			err = proto.Unmarshal(value, m)
		}
		if err == nil {
			err = checkSettings(m)
		}
		if err != nil {
			s.e.log.Warn("settings of a link not read", "key", key, "error", err)
			return nil
		}
		s.e.change(func(now int64, t *topology) { t.setSettings(now, p, m) })
		return nil
	})
}

// parseEnds returns the link between two ports of a request.
func parseEnds(a, b *api.Location) (pair, error) {
	for _, l := range []*api.Location{a, b} {
		if _, err := flow.ParseDPID(l.GetDpid()); err != nil || !flow.Port(l.GetPort()).Physical() {
			return pair{}, api.Errorf(codes.InvalidArgument, "port %.80q:%d: want the DPID of a switch and the number of a physical port", l.GetDpid(), l.GetPort())
		}
	}
	from, to := a.Flow(), b.Flow()
	if from.Switch == to.Switch {
		return pair{}, api.Errorf(codes.InvalidArgument, "both ports are of switch %v: want ports of two switches", from.Switch)
	}
	return newPair(from, to), nil
}

// set answers SetLink.
func (s *settings) set(ctx context.Context, req *api.SetLinkRequest) (*api.SetLinkResponse, error) {
	p, err := parseEnds(req.GetA(), req.GetB())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var next *api.LinkSettings
	var known bool
	others := map[string]bool{} // colours of other links
	count := 0
	s.e.read(func(t *topology) {
		next, known = proto.CloneOf(t.settings[p]), t.settings[p] != nil
		count = len(t.settings)
		for o, m := range t.settings {
			if o != p {
				for _, c := range m.GetColours() {
					others[c] = true
				}
			}
		}
	})
	if next == nil {
		next = &api.LinkSettings{}
	}
	if err := mergeSettings(next, req.GetSettings(), req.GetChange()); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "link %v: %w", p, err)
	}
	if err := checkSettings(next); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "link %v: %w", p, err)
	}
	for _, c := range next.Colours {
		others[c] = true
	}
	switch {
	case len(others) > coloursMax:
		return nil, api.Errorf(codes.ResourceExhausted, "link %v: %d colours in the network: want at most %d; use those that there are (weft link list)", p, len(others), coloursMax)
	case !known && count >= settingsMax:
		return nil, api.Errorf(codes.ResourceExhausted, "link %v: %d links have settings already: take some back", p, count)
	}
	if proto.Size(next) == 0 {
		err = s.store.Delete(ctx, p.key())
	} else {
		err = s.put(ctx, p.key(), next)
	}
	if err != nil {
		return nil, err
	}
	s.e.change(func(now int64, t *topology) { t.setSettings(now, p, next) })
	return &api.SetLinkResponse{Settings: next}, nil
}

func (s *settings) put(ctx context.Context, key string, m *api.LinkSettings) error {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return err
	}
	_, revision, err := s.store.Get(ctx, key)
	if err == nil {
		_, err = s.store.Update(ctx, key, value, revision)
	}
	return err
}

// mergeSettings copies from from to m the values named, or all if none is named.
func mergeSettings(m, from *api.LinkSettings, names []string) error {
	to, src := m.ProtoReflect(), from.ProtoReflect()
	fields := to.Descriptor().Fields()
	if len(names) == 0 {
		proto.Reset(m)
		proto.Merge(m, from)
		return nil
	}
	for _, name := range names {
		f := fields.ByTextName(name)
		if f == nil {
			var list []string
			for i := range fields.Len() {
				list = append(list, fields.Get(i).TextName())
			}
			return fmt.Errorf("change %.80q: want one of %s", name, strings.Join(list, ", "))
		}
		if from.ProtoReflect().IsValid() && src.Has(f) {
			part := &api.LinkSettings{}
			part.ProtoReflect().Set(f, src.Get(f))
			to.Clear(f)
			proto.Merge(m, part)
		} else {
			to.Clear(f)
		}
	}
	return nil
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)

// checkSettings says what is wrong with settings, and puts their names in order.
func checkSettings(m *api.LinkSettings) error {
	switch {
	case m.CapacityKbps > capacityMax:
		return fmt.Errorf("capacity %d kbit/s: want at most %d", m.CapacityKbps, uint64(capacityMax))
	case m.DelayUs > delayMax:
		return fmt.Errorf("delay %d µs: want at most %d", m.DelayUs, delayMax)
	case m.Metric > maxWeight:
		return fmt.Errorf("metric %d: want at most %d", m.Metric, maxWeight)
	}
	for _, list := range []struct {
		what  string
		names *[]string
		most  int
	}{{"colour", &m.Colours, coloursMax}, {"risk group", &m.RiskGroups, riskGroupsMax}} {
		for _, name := range *list.names {
			if !nameForm.MatchString(name) {
				return fmt.Errorf("%s %.80q: want 1 to 32 letters, digits, dashes and underscores, the first a letter or digit", list.what, name)
			}
		}
		slices.Sort(*list.names)
		*list.names = slices.Compact(*list.names)
		if n := len(*list.names); n > list.most {
			return fmt.Errorf("%d %ss: want at most %d", n, list.what, list.most)
		}
	}
	return nil
}

package scp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/sbi"
)

// producer is a registered instance of a network function: as a producer of its
// services, and as a consumer of others'. It does not change but for relayed and
// what follows, which the proxy's mu guards.
type producer struct {
	profile *sbi.NFProfile
	read    *sbi.Reading // what could be read of the profile, which it has
	text    []byte       // the profile
	by      netip.Addr   // the host that registered it; invalid if it is known from the NRF
	class   string       // who may use it, the same for all that allow the same; empty if all may
	form    string       // what makes it as good as others, the same for all that are; empty if nothing does
	points  []sbi.EndPoint
	open    *sbi.NFProfile // the profile as if it served, and all might use it
	named   []netip.Addr   // that the profile names, in order
	unclear bool           // only the NRF can say which discoveries it fits
	whyNot  string         // why no end point can stand for it, whatever others do; empty if one can
	names   []string       // of it and its services, in lower case
	front   bool           // it is the NRF, in place of which the front answers
	sets    []string       // that it and its services are of

	relayed bool  // by has registered it for another host, as an SCP does
	heard   int64 // when it last spoke, in nanoseconds; 0 if its heartbeats do not pass here
	passed  int64 // since when its heartbeats may have gone past the front; 0: it has spoken here since
	drained bool
	doubted bool // an update could not be followed, so the NRF is asked

	late     bool         // at the last sweep
	unproven []netip.Addr // of named: nobody has seen them where by is
	foreign  netip.Addr   // one of these, which is elsewhere; invalid if none is

	turn     int   // of the registry, when it came or ended
	listed   int64 // when the NRF last listed it
	relisted bool  // it has since
	unlisted bool  // it does not list it any more
}

// kept is a producer as it is stored.
type kept struct {
	Profile json.RawMessage `json:"profile"`
	By      netip.Addr      `json:"by,omitzero"`
	Relayed bool            `json:"relayed,omitempty"`
	Watched bool            `json:"watched,omitempty"`
	Drained bool            `json:"drained,omitempty"`
	Doubted []netip.Addr    `json:"doubted,omitempty"` // its unproven addresses
	Ended   bool            `json:"ended,omitempty"`
	Names   sbi.Names       `json:"names,omitempty"` // the addresses of those that it has
}

// newProducer returns the producer that a profile describes, as far as it can be
// read.
func newProducer(text []byte, by netip.Addr) (*producer, error) {
	read, err := sbi.Read(text)
	if err != nil {
		return nil, err
	}
	x := &producer{profile: &read.NFProfile, read: read, text: text, by: by}
	x.resolve(nil)
	add := func(list []string, all ...string) []string {
		for _, one := range all {
			if one != "" && !slices.Contains(list, one) {
				list = append(list, one)
			}
		}
		return list
	}
	x.names, x.sets = add(nil, strings.ToLower(x.profile.FQDN)), add(nil, x.profile.NFSetIDList...)
	for _, s := range x.profile.Services() {
		x.names, x.sets = add(x.names, strings.ToLower(s.FQDN)), add(x.sets, s.NFServiceSetIDList...)
	}
	return x, nil
}

// resolve finds where the producer is, with the addresses of names.
func (p *producer) resolve(names sbi.Names) {
	at := p.profile.Resolved(names)
	p.points, p.named, p.whyNot = at.EndPoints(), at.Addresses(), p.read.Unusable(at)
	open := at.Public()
	open.NFStatus, p.open = sbi.Registered, &open
	slices.SortFunc(p.named, netip.Addr.Compare)
	p.form = ""
	if form := formOf(p.profile); len(form) > 0 {
		text, _ := json.Marshal(form) // of texts
		p.form = digest(string(text))
	}
	if p.unclear, p.class = !p.read.Clear(), ""; p.read.Ruled() {
		p.class = classOf(p.profile)
	}
}

// formOf returns what has to be the same of two instances for which one end point may
// stand: whom they serve, and the prefixes of their services' paths.
func formOf(p *sbi.NFProfile) map[string]string {
	form := p.Serves()
	for _, s := range p.Services() {
		if prefix := s.Path(); prefix != "" {
			form["apiPrefix/"+s.ServiceName] = prefix
		}
	}
	return form
}

// classOf returns a name for who may use a profile and its services.
func classOf(p *sbi.NFProfile) string {
	type rules struct {
		Types   []sbi.NFType
		PLMNs   []sbi.PlmnID
		Slices  []sbi.Snssai
		Domains []string
	}
	tidy := func(r rules) rules {
		slices.Sort(r.Types)
		slices.Sort(r.Domains)
		return r
	}
	var all struct {
		Of       rules
		Services map[string]rules
	}
	all.Of = tidy(rules{slices.Clone(p.AllowedNFTypes), p.AllowedPLMNs, p.AllowedNSSAIs, slices.Clone(p.AllowedNFDomains)})
	all.Services = map[string]rules{}
	open := func(r rules) bool { return len(r.Types)+len(r.PLMNs)+len(r.Slices)+len(r.Domains) == 0 }
	for _, s := range p.Services() {
		if r := tidy(rules{slices.Clone(s.AllowedNFTypes), s.AllowedPLMNs, s.AllowedNSSAIs, slices.Clone(s.AllowedNFDomains)}); !open(r) {
			all.Services[s.ServiceName] = r
		}
	}
	if open(all.Of) && len(all.Services) == 0 {
		return ""
	}
	text, _ := json.Marshal(all) // of strings and numbers
	return digest(string(text))
}

// digest returns a short name for a text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// id returns by what the instance is known.
func (p *producer) id() string { return strings.ToLower(p.profile.NFInstanceID) }

// requester returns the instance as a consumer.
func (p *producer) requester() *sbi.Requester {
	r := &sbi.Requester{NFType: p.profile.NFType, InstanceID: p.profile.NFInstanceID}
	r.Complete(p.profile)
	return r
}

// addresses returns where the instance is known to be, in order.
func (p *producer) addresses() []netip.Addr {
	named := p.named
	if len(p.unproven) > 0 {
		named = slices.DeleteFunc(slices.Clone(named), func(a netip.Addr) bool { return slices.Contains(p.unproven, a) })
	}
	if !p.by.IsValid() || p.relayed || slices.Contains(named, p.by) {
		return named
	}
	all := append(slices.Clone(named), p.by)
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// serves returns why an instance is given no new connections, an empty state if it
// is.
func (p *producer) serves(now int64, margin time.Duration) (state, reason string) {
	timer := time.Duration(p.profile.HeartBeatTimer) * time.Second
	switch late := time.Duration(now - p.heard); {
	case p.drained:
		return "draining", "drained by an operator"
	case p.foreign.IsValid():
		return "draining", "its address " + p.foreign.String() + " is not at the port of the network where it was registered from"
	case p.profile.NFStatus != sbi.Registered:
		return "draining", "its status is " + string(p.profile.NFStatus)
	case p.heard != 0 && timer > 0 && late > timer+margin && !p.goesPast(now, margin):
		return "late", "no heartbeat for " + late.Round(time.Second).String()
	}
	return "", ""
}

const (
	pastTime       = 5 * time.Minute  // for how long connections to the NRF that the front has not taken may go on
	surveyInterval = 10 * time.Second // how often the NRF is asked for those who do not pass the front
)

// goesPast reports whether the heartbeats of the instance reach the NRF by connections from
// when the front was away, of which a function may have several: the NRF lists it.
func (p *producer) goesPast(now int64, margin time.Duration) bool {
	return p.passed != 0 && now-p.passed < int64(pastTime) && now-p.listed < int64(2*surveyInterval+margin)
}

// allows reports whether a consumer may use one of some services of the instance;
// without names, any.
func (p *producer) allows(r *sbi.Requester, names ...string) bool {
	if p.class == "" {
		return true
	}
	services := p.profile.Services()
	if len(services) == 0 {
		return p.profile.Allows(r, nil)
	}
	return slices.ContainsFunc(services, func(s sbi.NFService) bool {
		return (len(names) == 0 || slices.Contains(names, s.ServiceName)) && p.profile.Allows(r, &s)
	})
}

// admits reports whether a registered consumer may use one of some services of the
// instance. An SCP may use all: it uses them for others, who are judged when they ask it.
func (p *producer) admits(c *producer, names ...string) bool {
	return c.profile.NFType == sbi.SCP || p.allows(c.requester(), names...)
}

// first returns where its first service is reached; invalid if it names no
// address.
func (p *producer) first() (at sbi.EndPoint) {
	if len(p.points) > 0 {
		at = p.points[0]
	}
	return at
}

// compare orders producers by type and instance.
func compare(a, b *producer) int {
	return cmp.Or(cmp.Compare(a.profile.NFType, b.profile.NFType), cmp.Compare(a.id(), b.id()))
}

// owner returns who may change an instance.
func (p *producer) owner() netip.Addr {
	if p.by.IsValid() {
		return p.by
	}
	if all := p.addresses(); len(all) > 0 {
		return all[0]
	}
	return netip.Addr{}
}

// usualTimer is how long an instance may be silent whose NRF has not said how often
// it is to speak.
const usualTimer = time.Minute

// timer returns how long an instance whose heartbeats pass here may be silent before
// it has gone, if the NRF does not list it.
func (p *producer) timer() time.Duration {
	if p.profile.HeartBeatTimer > 0 {
		return time.Duration(p.profile.HeartBeatTimer) * time.Second
	}
	return usualTimer
}

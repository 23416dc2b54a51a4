package firewall

import (
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// keyWords is how many words of a packet the rules may look at if its verdict is
// to be remembered, beside the prefixes of its addresses.
const keyWords = 5

// proposeGap is for how long a flow's verdict is not proposed to the switch
// again, in nanoseconds.
const proposeGap = int64(1e9)

// memory holds the verdicts on the last flows of a switch by the current rules.
// It is discarded when they change.
type memory struct {
	kind [3]facets
	rare bool               // some rules look at unusual words
	flow [128][2]remembered // by hash; the later of two first
}

// facets is what the verdict on a packet of one kind depends on.
type facets struct {
	at   [keyWords]looked // words; the rest ask for nothing
	near *pairs           // of addresses, only which of its prefixes they are in; nil: see at
	full bool             // there are too many words
}

// flowKey is what packets with the same verdict have in common.
type flowKey struct {
	span uint64
	word [keyWords]uint64
}

// remembered is the verdict on the packets of one key.
type remembered struct {
	key      flowKey
	kind     uint8 // and 1; 0 is nothing
	deny     bool
	cond     *cond
	proposed int64
}

// newMemory returns an empty memory for what v looks at.
func newMemory(v *view) *memory {
	m := &memory{}
	for kind := range m.kind {
		f := &m.kind[kind]
		used := v.used(kind)
		if f.near = v.near(kind); f.near != nil {
			clear(used[wordIPv4 : wordIPv4+1])
			clear(used[wordSrc6 : wordDst6+2])
		}
		n := 0
		for i, mask := range used {
			if mask == 0 {
				continue
			}
			if f.full = n == keyWords; f.full {
				break
			}
			f.at[n] = looked{mask, uint8(i)}
			n++
		}
		m.rare = m.rare || used.used()&^usualWords != 0
	}
	return m
}

// near returns the pairs of prefixes if verdicts on packets of a kind depend on
// their addresses by these alone; else nil.
func (v *view) near(kind int) *pairs {
	switch {
	case v.own != nil || v.all.odd[kind]:
		return nil
	case kind == 0:
		return v.all.v4
	case kind == 1:
		return v.all.v6
	}
	return nil
}

// read writes what packets with the same verdict have in common to k and returns
// its hash.
func (f *facets) read(w *words, k *flowKey) uint64 {
	k.span = 0
	if f.near != nil {
		k.span = f.near.span(w)
	}
	k.word[0] = w[f.at[0].word%numWords] & f.at[0].mask
	k.word[1] = w[f.at[1].word%numWords] & f.at[1].mask
	k.word[2] = w[f.at[2].word%numWords] & f.at[2].mask
	k.word[3] = w[f.at[3].word%numWords] & f.at[3].mask
	k.word[4] = w[f.at[4].word%numWords] & f.at[4].mask
	a, b := mix(k.span, k.word[0]), mix(k.word[1]^0xe7037ed1a0b428db, k.word[2])
	return mix(a^b, mix(k.word[3]^0x8ebc6af09c88c6e3, k.word[4]))
}

// is reports whether two keys are equal.
func (k *flowKey) is(o *flowKey) bool {
	return (k.span^o.span)|(k.word[0]^o.word[0])|(k.word[1]^o.word[1])|(k.word[2]^o.word[2])|(k.word[3]^o.word[3])|(k.word[4]^o.word[4]) == 0
}

// judge is the running stage of one switch. One goroutine uses it.
type judge struct {
	book   *store
	sw     *site
	set    *ruleset
	view   view
	memory *memory
	search search
	key    flowKey // of the packet
	words  words   // of the packet; those that are never written stay zero
}

// open returns the stage for one switch.
func (b *store) open(sw flow.DPID) func(*flow.PacketIn, *flow.Decision) flow.Verdict {
	j := &judge{book: b, sw: b.sites.of(sw)}
	return j.packet
}

// packet lets a packet pass, or not.
func (j *judge) packet(in *flow.PacketIn, _ *flow.Decision) flow.Verdict {
	set := j.book.now.Load()
	if set != j.set {
		j.set, j.view, j.memory = set, set.view(j.sw.dpid), nil
	}
	if j.view.idle {
		return flow.Next
	}
	if in.Role == flow.RoleLink && !j.view.local {
		return flow.Next // judged where it entered
	}
	if in.Table > flow.TableFirewall && j.sw.enforced.Load() >= set.version {
		return flow.Next // the switch has let it pass; its addresses may be others now
	}
	k := packet.Headers(in)
	if hides(k) {
		j.sw.denied.Add(1)
		return flow.Drop
	}
	if j.memory == nil {
		j.memory = newMemory(&j.view)
	}
	w, kind := &j.words, kindOf(k.EthType)
	if j.memory.rare {
		w.pack(k)
	} else {
		w.packUsual(k)
	}
	c, deny, r := j.verdict(kind)
	if c != nil {
		c.rule.count.add(in.TotalLen)
	}
	if j.sw.reactive.Load() && (r == nil || in.Time-r.proposed > proposeGap) {
		if r != nil {
			r.proposed = in.Time
		}
		w.pack(k)
		j.sw.propose(w, j.book.line)
		if !j.memory.rare {
			*w = words{}
		}
	}
	if deny {
		j.sw.denied.Add(1)
		return flow.Drop
	}
	j.sw.allowed.Add(1)
	return flow.Next
}

// hides reports whether a packet hides what it carries, but not from its host: a first
// fragment without ports, or IPv6 whose chain of headers is cut off.
func hides(k *flow.Key) bool {
	switch {
	case k.EthType != flow.EthTypeIPv4 && k.EthType != flow.EthTypeIPv6:
		return false
	case k.EthType == flow.EthTypeIPv6 && (k.IPProto == 0 || k.IPProto == 43 || k.IPProto == 60): // a header of extensions is the last that is there
		return true
	case k.IPFrag != flow.FragAny || k.TPSrc|k.TPDst != 0:
		return false
	}
	return k.IPProto == flow.IPProtoTCP || k.IPProto == flow.IPProtoUDP || k.IPProto == flow.IPProtoSCTP
}

// verdict returns the verdict on the packet in words, and where it is remembered;
// nil if it is not.
func (j *judge) verdict(kind int) (c *cond, deny bool, r *remembered) {
	f := &j.memory.kind[kind]
	if f.full {
		c, deny = j.view.judge(&j.search, &j.words, nil)
		return c, deny, nil
	}
	h := f.read(&j.words, &j.key)
	two := &j.memory.flow[h>>57]
	if r = &two[0]; r.kind == uint8(kind)+1 && r.key.is(&j.key) {
		return r.cond, r.deny, r
	}
	if r = &two[1]; r.kind == uint8(kind)+1 && r.key.is(&j.key) {
		return r.cond, r.deny, r
	}
	c, deny = j.view.judge(&j.search, &j.words, nil)
	two[1] = two[0]
	r = &two[0]
	*r = remembered{key: j.key, kind: uint8(kind) + 1, deny: deny, cond: c}
	return c, deny, r
}

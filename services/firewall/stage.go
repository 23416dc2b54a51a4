package firewall

import (
	"weft/flow"
	"weft/packet"
)

// keyWords is how many words of a packet the rules may look at for its verdict
// to be remembered.
const keyWords = 6

// proposeGap is for how long a flow's verdict is not proposed to the switch
// again, in nanoseconds.
const proposeGap = int64(1e9)

// memory is the verdicts on the last flows of a switch.
type memory struct {
	at   [3][]looked // for each kind of packet, the words that its verdict depends on
	full [3]bool     // there are too many of them
	near [3]bool     // of addresses, only which prefixes they are in
	rare bool        // some are not among the usual words
	flow [256]remembered
}

// remembered is the verdict on the packets that agree in some words.
type remembered struct {
	key      [keyWords]uint64
	version  uint64
	kind     uint8
	deny     bool
	cond     *cond
	proposed int64
}

// newMemory returns an empty memory for what v looks at.
func newMemory(v *view) *memory {
	m := &memory{}
	for kind := range m.at {
		used := v.used(kind)
		if m.near[kind] = v.near(kind); m.near[kind] {
			clear(used[wordIPv4 : wordIPv4+1])
			clear(used[wordSrc6 : wordDst6+2])
		}
		for i, mask := range used {
			if mask != 0 {
				m.at[kind] = append(m.at[kind], looked{mask, uint8(i)})
			}
		}
		m.full[kind] = len(m.at[kind]) >= keyWords
		m.rare = m.rare || used.used()&^usualWords != 0
	}
	return m
}

// near reports whether verdicts on packets of a kind depend on their addresses
// only by the prefixes that these are in.
func (v *view) near(kind int) bool {
	return v.own == nil && !v.all.odd[kind] && (kind == 0 && v.all.v4 != nil || kind == 1 && v.all.v6 != nil)
}

// span returns the intervals that the addresses of a packet are in: packets of
// many hosts are alike by it.
func (v *view) span(w *words, kind int) uint64 {
	if kind == 0 {
		p := v.all.v4
		return uint64(p.src.find(address{lo: w[wordIPv4] >> 32}))<<32 | uint64(p.dst.find(address{lo: w[wordIPv4] & 0xffffffff}))
	}
	p := v.all.v6
	src, dst := p.src.find(address{w[wordSrc6], w[wordSrc6+1]}), p.dst.find(address{w[wordDst6], w[wordDst6+1]})
	return uint64(src)<<32 | uint64(dst)
}

// place returns where the verdict on a packet is remembered, and what its key
// is; nil if it cannot be.
func (m *memory) place(v *view, w *words, kind int, key *[keyWords]uint64) *remembered {
	if m.full[kind] {
		return nil
	}
	if m.near[kind] {
		key[0] = v.span(w, kind)
	}
	h := mix(uint64(kind), key[0])
	for j, l := range m.at[kind] {
		if j == keyWords-1 {
			break
		}
		v := w[l.word] & l.mask
		key[j+1] = v
		h = mix(h, v)
	}
	return &m.flow[h>>56]
}

// judge is the stage of one switch at work. One goroutine uses it.
type judge struct {
	book   *book
	sw     *site
	set    *ruleset
	view   view
	memory *memory
	words  words // of the packet; those that are never written stay zero
}

// open returns the stage for one switch.
func (b *book) open(sw flow.DPID) func(*flow.PacketIn, *flow.Decision) flow.Verdict {
	j := &judge{book: b, sw: b.site(sw)}
	return j.packet
}

// packet lets a packet on, or not.
func (j *judge) packet(in *flow.PacketIn, _ *flow.Decision) flow.Verdict {
	set := j.book.now.Load()
	if set != j.set {
		j.set, j.view, j.memory = set, set.view(j.sw.dpid), nil
	}
	if j.view.idle {
		return flow.Next
	}
	if in.Role == flow.RoleLink && !j.view.local {
		return flow.Next // it has been judged where it entered
	}
	if in.Table > flow.TableFirewall && j.sw.enforced.Load() >= set.version {
		return flow.Next // the switch has let it pass; its addresses may be others now
	}
	k := packet.Headers(in)
	if j.memory == nil {
		j.memory = newMemory(&j.view)
	}
	w := &j.words
	if j.memory.rare {
		w.pack(k)
	} else {
		w.packUsual(k)
	}
	kind := kindOf(k.EthType)
	var key [keyWords]uint64
	r := j.memory.place(&j.view, w, kind, &key)
	var c *cond
	var deny, known bool
	if r != nil && r.version == set.version && int(r.kind) == kind && r.key == key {
		c, deny, known = r.cond, r.deny, true
	} else {
		c, deny = j.view.judge(w, nil)
		if r != nil {
			*r = remembered{key: key, version: set.version, kind: uint8(kind), deny: deny, cond: c}
		}
	}
	if c != nil {
		c.rule.packets.Add(1)
		c.rule.bytes.Add(uint64(in.TotalLen))
	}
	if j.sw.reactive.Load() && (r == nil || !known || in.Time-r.proposed > proposeGap) {
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

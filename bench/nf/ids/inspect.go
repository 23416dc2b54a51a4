package ids

import (
	"bytes"
	"math"
)

// Inspector applies rules to frames. It is for one goroutine.
type Inspector struct {
	rules    []Rule
	texts    *automaton // nil: none, or one by one
	contents []int      // the rules of its texts
	rest     []int      // rules that are looked at one by one

	d     decoded
	found []int
	seen  []uint64 // by rule: the frame that met it last
	frame uint64
	note  func(text, end int)
}

// NewInspector returns one for rules. All texts are searched for in one pass, or
// oneByOne, as the paper's function does: the time for a packet then grows with the rules.
func NewInspector(rules []Rule, oneByOne bool) *Inspector {
	i := &Inspector{rules: rules, seen: make([]uint64, len(rules))}
	var texts [][]byte
	for n := range rules {
		if rules[n].Kind != Content || oneByOne {
			i.rest = append(i.rest, n)
			continue
		}
		i.contents = append(i.contents, n)
		texts = append(texts, rules[n].text)
	}
	if len(texts) > 0 {
		i.texts = newAutomaton(texts)
	}
	i.note = func(text, end int) {
		n := i.contents[text]
		r := &rules[n]
		if i.seen[n] == i.frame || !r.nocase && !bytes.Equal(i.d.payload[end-len(r.text):end], r.text) || !r.headers(&i.d) {
			return
		}
		i.seen[n] = i.frame
		i.found = append(i.found, n)
	}
	return i
}

// Inspect returns the rules that a frame meets, by their place; valid until the next
// call. It takes any bytes.
func (i *Inspector) Inspect(frame []byte) []int {
	i.frame++
	i.found = i.found[:0]
	i.d.decode(frame)
	if i.texts != nil {
		i.texts.find(i.d.payload, i.note)
	}
	for _, n := range i.rest {
		if i.rules[n].meets(&i.d) {
			i.found = append(i.found, n)
		}
	}
	return i.found
}

// meets reports whether a frame meets the rule.
func (r *Rule) meets(d *decoded) bool {
	switch r.Kind {
	case Content:
		return r.headers(d) && contains(d.payload, r.text, r.nocase)
	case Protocol:
		return r.headers(d)
	}
	return r.anomalous(d)
}

// headers reports whether the headers are as a rule of content or protocol says.
func (r *Rule) headers(d *decoded) bool {
	switch {
	case r.ethertype >= 0 && r.ethertype != d.ethertype, r.protocol >= 0 && r.protocol != d.protocol,
		(r.sport != ports{} || r.dport != ports{}) && !(d.hasPorts && r.sport.has(d.sport) && r.dport.has(d.dport)),
		r.from.IsValid() && !(d.ip && r.from.Contains(d.from)), r.to.IsValid() && !(d.ip && r.to.Contains(d.to)),
		len(r.flags) > 0 && !(d.hasFlags && d.flags&r.flags[0] == r.flags[0]):
		return false
	}
	return true
}

const synFin, allFlags flags = 0b11, 0b101001 // SYN and FIN; FIN, PSH and URG

func (r *Rule) anomalous(d *decoded) bool {
	switch r.is {
	case "malformed":
		return d.malformed
	case "ip-checksum":
		return d.checksum
	case "fragment":
		return d.fragment
	case "same-address":
		return d.ip && d.from == d.to
	case "syn-fin":
		return d.hasFlags && d.flags&synFin == synFin
	case "no-flags":
		return d.hasFlags && d.flags == 0
	case "all-flags":
		return d.hasFlags && d.flags&allFlags == allFlags
	case "from-multicast":
		return d.ip && d.from.IsMulticast()
	case "zero-port":
		return d.hasPorts && (d.sport == 0 || d.dport == 0)
	case "double-tag":
		return d.tags > 1
	case "ttl-below":
		return d.ip && int(d.ttl) < r.limit
	case "size-above":
		return len(d.frame) > r.limit
	case "run-above":
		d.count()
		return d.run > r.limit
	}
	d.count()
	return d.entropy > float64(r.limit)
}

// count counts the bytes of the payload, once.
func (d *decoded) count() {
	if d.counted {
		return
	}
	d.counted = true
	var count [256]int
	run, last := 0, -1
	for _, c := range d.payload {
		if count[c]++; int(c) != last {
			run, last = 0, int(c)
		}
		run++
		d.run = max(d.run, run)
	}
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(d.payload))
			d.entropy -= 1000 * p * math.Log2(p)
		}
	}
}

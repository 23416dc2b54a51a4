package l2vpn

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// What has been learnt of a vpls is stored, so that a restart leaves its entries as they
// are. A circuit has several keys, its number with that of a part, and an address is
// always in the same part: a new one is a write of a part of them.
const macParts = 16

// macPart is the part that an address is in.
func macPart(m flow.MAC) int { return int(m[4]^m[5]) % macParts }

// keptMACs returns what is stored of the senders of all vpls: lines of an end and the
// addresses there. It is called with mu held.
func (b *store) keptMACs() map[string]string {
	all := map[string]string{}
	for _, s := range b.status {
		if s.lan == nil {
			continue
		}
		if s.lan.kept == nil {
			s.lan.kept = s.lan.parts(s.circuit)
		}
		for part, text := range s.lan.kept {
			if text != "" {
				all[fmt.Sprintf("%d.%d", s.circuit.Id, part)] = text
			}
		}
	}
	return all
}

// parts returns the stored form of the senders of a circuit.
func (l *lan) parts(c *circuit) []string {
	at := map[end][]flow.MAC{}
	for _, mac := range l.macs() {
		at[l.known[mac].at] = append(at[l.known[mac].at], mac)
	}
	texts := make([]strings.Builder, macParts)
	for _, e := range c.ends {
		var named [macParts]bool
		for _, mac := range at[e] {
			part := macPart(mac)
			if !named[part] {
				fmt.Fprintf(&texts[part], "\n%v", e)
				named[part] = true
			}
			fmt.Fprintf(&texts[part], " %v", mac)
		}
	}
	list := make([]string, macParts)
	for i := range texts {
		list[i] = strings.TrimPrefix(texts[i].String(), "\n")
	}
	return list
}

// recallMACs takes over a part of what an earlier run has learnt, at ends that the circuit
// still has. Such an address is asked for when it has not been heard for l2vpn.mac_age.
func (b *store) recallMACs(key, text string) {
	id, _, _ := strings.Cut(key, ".")
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.counters.of[uint32(n)]
	if of == nil || b.status[of.circuit.Name].lan == nil {
		return
	}
	s := b.status[of.circuit.Name]
	now := b.now()
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		for _, e := range s.circuit.ends {
			if len(words) == 0 || e.String() != words[0] {
				continue
			}
			for _, word := range words[1:] {
				mac, err := flow.ParseMAC(word)
				if err != nil || mac.Multicast() || s.lan.known[mac] != nil || s.lan.count[e] >= s.lan.most {
					continue
				}
				s.lan.known[mac] = &sender{at: e, home: e, heard: now}
				s.lan.count[e]++
			}
		}
	}
}

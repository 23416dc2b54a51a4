package ids

import "bytes"

// automaton finds all of many texts in one pass (Aho and Corasick, Efficient string
// matching, 1975), whatever their case: texts and bytes are folded to lower case.
type automaton struct {
	class   [256]uint8 // of a byte; those in no text are of class 0
	classes int
	next    []int32 // by state and class
	ends    [][]int // by state: the texts that end there
}

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		b += 'a' - 'A'
	}
	return b
}

// newAutomaton makes one of texts, none of which is empty.
func newAutomaton(texts [][]byte) *automaton {
	a := &automaton{classes: 1}
	for _, t := range texts {
		for _, b := range t {
			if b = lower(b); a.class[b] == 0 && a.classes < 256 {
				a.class[b] = uint8(a.classes)
				a.classes++
			}
		}
	}
	for b := 'A'; b <= 'Z'; b++ {
		a.class[b] = a.class[lower(byte(b))]
	}
	state := func() int32 {
		a.next = append(a.next, make([]int32, a.classes)...)
		a.ends = append(a.ends, nil)
		return int32(len(a.ends) - 1)
	}
	state()
	for i, t := range texts {
		at := int32(0)
		for _, b := range t {
			to := int(at)*a.classes + int(a.class[b])
			if a.next[to] == 0 {
				n := state()
				a.next[to] = n
			}
			at = a.next[to]
		}
		a.ends[at] = append(a.ends[at], i)
	}
	a.complete()
	return a
}

// complete gives every state a successor for every class: where it has none, that of
// the longest other state that ends alike.
func (a *automaton) complete() {
	shorter := make([]int32, len(a.ends))
	var queue []int32
	for c := range a.classes {
		if n := a.next[c]; n != 0 {
			queue = append(queue, n)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		a.ends[s] = append(a.ends[s], a.ends[shorter[s]]...)
		for c := range a.classes {
			at := int(s)*a.classes + c
			of := a.next[int(shorter[s])*a.classes+c]
			if n := a.next[at]; n != 0 {
				shorter[n] = of
				queue = append(queue, n)
			} else {
				a.next[at] = of
			}
		}
	}
}

// find calls found for each place where a text ends, until it returns false.
func (a *automaton) find(b []byte, found func(text, end int)) {
	s := int32(0)
	for i, c := range b {
		s = a.next[int(s)*a.classes+int(a.class[c])]
		for _, t := range a.ends[s] {
			found(t, i+1)
		}
	}
}

// contains searches for one text alone.
func contains(b, text []byte, nocase bool) bool {
	if !nocase {
		return bytes.Contains(b, text)
	}
	first, rest := lower(text[0]), text[1:]
search:
	for i := 0; i+len(text) <= len(b); i++ {
		if lower(b[i]) != first {
			continue
		}
		for j, c := range rest {
			if lower(b[i+1+j]) != lower(c) {
				continue search
			}
		}
		return true
	}
	return false
}

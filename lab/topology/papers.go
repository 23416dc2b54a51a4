package topology

// MSNFig8 is the network of Fig. 8 of the MSN paper, on which it measures the
// first packet's latency. The drawing is not in the text at hand, so this is a
// reconstruction from what section 4.3 says of it: H1 and H3 are two switches
// apart, H1 and H10 five. It is five switches in a row with two hosts each, so
// that h1 and h3 have s1 and s2 between them, h1 and h10 all of s1 to s5.
func MSNFig8() *Topology {
	b := newBuilder("msn-fig8")
	prev := ""
	for range 5 {
		s := b.add()
		if prev != "" {
			b.link(prev, s)
		}
		prev = s
		b.host(s)
		b.host(s)
	}
	return b.done()
}

// MSNFig13 is the network of Fig. 13 of the MSN paper, on which it measures
// scalability. The drawing is not in the text at hand, so this is a
// reconstruction from what section 4.4.2 says of it: 16 hosts in a
// hierarchical data-centre network. It is a binary tree of 15 switches, s1 the
// core, s2 and s3 below it, then four, then eight edge switches with two hosts
// on each.
func MSNFig13() *Topology {
	t, err := Tree(4, 2)
	if err != nil {
		panic(err) // the arguments are constants
	}
	t.Name = "msn-fig13"
	return t
}

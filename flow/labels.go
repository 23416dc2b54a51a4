package flow

// LabelMax is the largest MPLS label; those below 16 have meanings of their own
// (RFC 3032 §2.1).
const LabelMax = 1<<20 - 1

// The ranges of labels, by what they stand for.
const (
	TunnelLabels      uint32 = 16 // of label-switched paths
	TunnelLabelsLast  uint32 = 199_999
	CircuitLabels     uint32 = 200_000 // of circuits, under those of tunnels
	CircuitLabelsLast uint32 = 799_999
	SegmentLabels     uint32 = 800_000 // reserved: of segment routing
	VPNLabels         uint32 = 900_000 // reserved: of layer-3 VPNs, up to LabelMax
)

package openflow

import (
	"math/bits"
	"math/rand/v2"

	"github.com/weft-sdn/weft/flow"
)

func randomDesc(r *rand.Rand, v Version) Desc {
	return Desc{word(r, 255), word(r, 255), word(r, 255), word(r, 31), word(r, 255)}
}

func randomFlowStats(r *rand.Rand, v Version) FlowStats {
	s := FlowStats{Entry: randomEntry(r, v), DurationSec: r.Uint32(), DurationNsec: r.Uint32(), Packets: r.Uint64(), Bytes: r.Uint64()}
	if v == V10 {
		s.Table, s.Flags = uint8(r.Uint32()), 0
	}
	return s
}

func randomTableStats(r *rand.Rand, v Version) TableStats {
	s := TableStats{Table: uint8(r.Uint32()), Active: r.Uint32(), Lookups: r.Uint64(), Matched: r.Uint64()}
	if v == V10 {
		s.Name, s.Wildcards, s.MaxEntries = word(r, 31), r.Uint32(), r.Uint32()
	}
	return s
}

func randomPortStats(r *rand.Rand, v Version) PortStats {
	s := PortStats{port(r, v), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(),
		r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint32(), r.Uint32()}
	if v == V10 {
		s.DurationSec, s.DurationNsec = 0, 0
	}
	return s
}

func randomQueueStats(r *rand.Rand, v Version) QueueStats {
	s := QueueStats{port(r, v), r.Uint32(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint32(), r.Uint32()}
	if v == V10 {
		s.DurationSec, s.DurationNsec = 0, 0
	}
	return s
}

func counters(r *rand.Rand) []Counter {
	return many(r, 3, func() Counter { return Counter{r.Uint64(), r.Uint64()} })
}

func randomGroupStats(r *rand.Rand, v Version) GroupStats {
	return GroupStats{r.Uint32(), r.Uint32(), r.Uint64(), r.Uint64(), r.Uint32(), r.Uint32(), counters(r)}
}

func randomMeterStats(r *rand.Rand, v Version) MeterStats {
	return MeterStats{r.Uint32(), r.Uint32(), r.Uint64(), r.Uint64(), r.Uint32(), r.Uint32(), counters(r)}
}

func randomGroupFeatures(r *rand.Rand, v Version) (f GroupFeatures) {
	f.Types, f.Capabilities = r.Uint32(), r.Uint32()
	for i := range f.MaxGroups {
		f.MaxGroups[i], f.Actions[i] = r.Uint32(), ActionSet(r.Uint32())
	}
	return f
}

func randomTableFeatures(r *rand.Rand, v Version) TableFeatures {
	f := TableFeatures{
		Table: uint8(r.Uint32()), Name: word(r, 31), MetadataMatch: r.Uint64(), MetadataWrite: r.Uint64(),
		Config: r.Uint32(), MaxEntries: r.Uint32(), Given: r.Uint32() & knownTableProperties,
	}
	const allActions = 1<<28 - 1
	for given := f.Given; given != 0; given &= given - 1 {
		kind := bits.TrailingZeros32(given)
		switch kind {
		case TablePropertyInstructions:
			f.Instructions = InstructionSet(r.Uint32() & 0x7e)
		case TablePropertyInstructionsMiss:
			f.InstructionsMiss = InstructionSet(r.Uint32() & 0x7e)
		case TablePropertyNextTables, TablePropertyNextTablesMiss:
			for range r.IntN(10) {
				f.tables(kind).Add(uint8(r.Uint32()))
			}
		case TablePropertyWriteActions, TablePropertyWriteActionsMiss, TablePropertyApplyActions, TablePropertyApplyActionsMiss:
			*f.actions(kind) = ActionSet(r.Uint32() & allActions)
		default:
			*f.fields(kind) = flow.FieldSet(r.Uint64()) & (1<<flow.NumFields - 1)
		}
	}
	f.Maskable = f.Match & flow.FieldSet(r.Uint64())
	f.Experimenters = many(r, 2, func() TableExperimenter {
		return TableExperimenter{r.IntN(2) == 0, r.Uint32(), r.Uint32(), data(r, r.IntN(20))}
	})
	return f
}

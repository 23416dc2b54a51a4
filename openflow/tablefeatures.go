package openflow

import (
	"fmt"
	"math/bits"

	"github.com/weft-sdn/weft/flow"
)

// ActionSet is a set of actions, a bit per flow.ActionKind; SetExperimenter
// stands for those of experimenters.
type ActionSet uint32

// InstructionSet is a set of instructions, a bit per instruction type of
// OpenFlow 1.3.5 §7.2.4; SetExperimenter stands for those of experimenters.
type InstructionSet uint32

// TableSet is a set of tables, a bit per table.
type TableSet [4]uint64

// Has reports whether table t is in the set.
func (s *TableSet) Has(t uint8) bool { return s[t>>6]&(1<<(t&63)) != 0 }

// Add puts table t into the set.
func (s *TableSet) Add(t uint8) { s[t>>6] |= 1 << (t & 63) }

// TableFeatures is what a table can do (OpenFlow 1.3.5 §7.3.5.5). Where the
// property for the table-miss entry is not Given it is the same as for the others.
type TableFeatures struct {
	Table             uint8
	Name              string // up to 31 octets
	MetadataMatch     uint64
	MetadataWrite     uint64
	Config            uint32
	MaxEntries        uint32
	Given             uint32 // the properties that are given: 1 << TableProperty…
	Instructions      InstructionSet
	InstructionsMiss  InstructionSet
	NextTables        TableSet
	NextTablesMiss    TableSet
	WriteActions      ActionSet
	WriteActionsMiss  ActionSet
	ApplyActions      ActionSet
	ApplyActionsMiss  ActionSet
	Match             flow.FieldSet
	Maskable          flow.FieldSet // those of Match that may be masked
	Wildcards         flow.FieldSet // those of Match that may be left out
	WriteSetField     flow.FieldSet
	WriteSetFieldMiss flow.FieldSet
	ApplySetField     flow.FieldSet
	ApplySetFieldMiss flow.FieldSet
	Experimenters     []TableExperimenter
}

// TableExperimenter is an experimenter's property of a table.
type TableExperimenter struct {
	Miss         bool // for the table-miss entry
	Experimenter uint32
	ExpType      uint32
	Data         []byte
}

// The properties of a table (OpenFlow 1.3.5 §7.3.5.5.2).
const (
	TablePropertyInstructions      = 0
	TablePropertyInstructionsMiss  = 1
	TablePropertyNextTables        = 2
	TablePropertyNextTablesMiss    = 3
	TablePropertyWriteActions      = 4
	TablePropertyWriteActionsMiss  = 5
	TablePropertyApplyActions      = 6
	TablePropertyApplyActionsMiss  = 7
	TablePropertyMatch             = 8
	TablePropertyWildcards         = 10
	TablePropertyWriteSetField     = 12
	TablePropertyWriteSetFieldMiss = 13
	TablePropertyApplySetField     = 14
	TablePropertyApplySetFieldMiss = 15
)

// SetExperimenter is the bit of an ActionSet or InstructionSet that stands for
// those of experimenters. It is decoded only: which ones is not kept.
const SetExperimenter = 1 << 31

const (
	tableFeaturesLen          = 64 // before the properties
	tablePropExperimenter     = 0xfffe
	tablePropExperimenterMiss = 0xffff
	tablePropExpLen           = 12
)

// AppendTableFeatures appends one table to the body of a table features
// request or reply.
func (v Version) AppendTableFeatures(dst []byte, f *TableFeatures) ([]byte, error) {
	start := len(dst)
	dst = be.AppendUint64(dst, uint64(f.Table)<<40)
	dst = appendName(dst, f.Name, tableNameLen)
	dst = be.AppendUint64(dst, f.MetadataMatch)
	dst = be.AppendUint64(dst, f.MetadataWrite)
	dst = be.AppendUint32(dst, f.Config)
	dst = be.AppendUint32(dst, f.MaxEntries)
	for given := f.Given; given != 0; given &= given - 1 {
		kind := bits.TrailingZeros32(given)
		at := len(dst)
		dst = be.AppendUint32(dst, uint32(kind)<<16)
		list := f.appendProperty(dst, kind)
		if list == nil {
			return dst[:start], unsupported(v, "table features", fmt.Sprintf("property %d", kind), pair{ErrTableFeaturesFailed, TableFeaturesFailedBadType})
		}
		dst = padProperty(list, at)
	}
	for i := range f.Experimenters {
		x := &f.Experimenters[i]
		kind := uint32(tablePropExperimenter)
		if x.Miss {
			kind = tablePropExperimenterMiss
		}
		at := len(dst)
		dst = be.AppendUint32(dst, kind<<16)
		dst = be.AppendUint32(dst, x.Experimenter)
		dst = be.AppendUint32(dst, x.ExpType)
		dst = append(dst, x.Data...)
		dst = padProperty(dst, at)
	}
	return finishRecord(dst, start, 0)
}

// padProperty fills in the length of the property at at, which does not count
// the padding that it adds.
func padProperty(dst []byte, at int) []byte {
	n := len(dst) - at // where this overflows the table is too long as well
	dst[at+2], dst[at+3] = byte(n>>8), byte(n)
	return appendZeros(dst, pad8(n)-n)
}

func (f *TableFeatures) appendProperty(dst []byte, kind int) []byte {
	switch kind {
	case TablePropertyInstructions, TablePropertyInstructionsMiss,
		TablePropertyWriteActions, TablePropertyWriteActionsMiss, TablePropertyApplyActions, TablePropertyApplyActionsMiss:
		for set := f.numbers(kind) &^ SetExperimenter; set != 0; set &= set - 1 {
			dst = be.AppendUint32(dst, uint32(bits.TrailingZeros32(set))<<16|4)
		}
	case TablePropertyNextTables, TablePropertyNextTablesMiss:
		s := f.tables(kind)
		for t := range 256 {
			if s.Has(uint8(t)) {
				dst = append(dst, uint8(t))
			}
		}
	case TablePropertyMatch, TablePropertyWildcards, TablePropertyWriteSetField, TablePropertyWriteSetFieldMiss,
		TablePropertyApplySetField, TablePropertyApplySetFieldMiss:
		for set := uint64(*f.fields(kind)) & (1<<flow.NumFields - 1); set != 0; set &= set - 1 {
			n := flow.Field(bits.TrailingZeros64(set))
			h := oxmOf(n) | uint32(n.Len())
			if kind == TablePropertyMatch && f.Maskable.Has(n) {
				h += oxmHasMask + uint32(n.Len())
			}
			dst = be.AppendUint32(dst, h)
		}
	default:
		return nil
	}
	return dst
}

// numbers is the set of instructions or actions of a property.
func (f *TableFeatures) numbers(kind int) uint32 {
	switch kind {
	case TablePropertyInstructions:
		return uint32(f.Instructions)
	case TablePropertyInstructionsMiss:
		return uint32(f.InstructionsMiss)
	}
	return uint32(*f.actions(kind))
}

func (f *TableFeatures) actions(kind int) *ActionSet {
	switch kind {
	case TablePropertyWriteActions:
		return &f.WriteActions
	case TablePropertyWriteActionsMiss:
		return &f.WriteActionsMiss
	case TablePropertyApplyActions:
		return &f.ApplyActions
	}
	return &f.ApplyActionsMiss
}

func (f *TableFeatures) tables(kind int) *TableSet {
	if kind == TablePropertyNextTables {
		return &f.NextTables
	}
	return &f.NextTablesMiss
}

func (f *TableFeatures) fields(kind int) *flow.FieldSet {
	switch kind {
	case TablePropertyMatch:
		return &f.Match
	case TablePropertyWildcards:
		return &f.Wildcards
	case TablePropertyWriteSetField:
		return &f.WriteSetField
	case TablePropertyWriteSetFieldMiss:
		return &f.WriteSetFieldMiss
	case TablePropertyApplySetField:
		return &f.ApplySetField
	}
	return &f.ApplySetFieldMiss
}

// DecodeTableFeatures appends the tables in the body of a table features
// request or reply to dst. Experimenters' fields are left out; the data of
// their properties is a part of body.
func (v Version) DecodeTableFeatures(body []byte, dst []TableFeatures) ([]TableFeatures, error) {
	for off := 0; off < len(body); {
		n, err := v.record(body, off, 0, tableFeaturesLen)
		if err != nil {
			return dst, err
		}
		b := body[off : off+n]
		f := TableFeatures{
			Table: b[2], Name: name(b[8:40]), MetadataMatch: be.Uint64(b[40:]), MetadataWrite: be.Uint64(b[48:]),
			Config: be.Uint32(b[56:]), MaxEntries: be.Uint32(b[60:]),
		}
		if err := f.decodeProperties(b); err != nil {
			return dst, inBody(v, err, off)
		}
		dst = append(dst, f)
		off += n
	}
	return dst, nil
}

func (f *TableFeatures) decodeProperties(b []byte) error {
	answer := pair{ErrTableFeaturesFailed, TableFeaturesFailedBadLen}
	for off := tableFeaturesLen; off < len(b); {
		// both the table and its properties are aligned: a header is there
		kind, n := int(be.Uint16(b[off:])), int(be.Uint16(b[off+2:]))
		if n < 4 {
			return malformed(TypeMultipartReply, off+2, "table property length below that of its header", answer)
		}
		if pad8(n) > len(b)-off {
			return malformed(TypeMultipartReply, off+2, "table property longer than its table", answer)
		}
		p := b[off+4 : off+n]
		ok := true
		switch kind {
		case TablePropertyInstructions:
			var set uint32
			ok = decodeNumbers(p, &set)
			f.Instructions = InstructionSet(set)
		case TablePropertyInstructionsMiss:
			var set uint32
			ok = decodeNumbers(p, &set)
			f.InstructionsMiss = InstructionSet(set)
		case TablePropertyNextTables, TablePropertyNextTablesMiss:
			s := f.tables(kind)
			*s = TableSet{}
			for _, t := range p {
				s.Add(t)
			}
		case TablePropertyWriteActions, TablePropertyWriteActionsMiss, TablePropertyApplyActions, TablePropertyApplyActionsMiss:
			var set uint32
			ok = decodeNumbers(p, &set)
			*f.actions(kind) = ActionSet(set)
		case TablePropertyMatch, TablePropertyWildcards, TablePropertyWriteSetField, TablePropertyWriteSetFieldMiss,
			TablePropertyApplySetField, TablePropertyApplySetFieldMiss:
			var masked flow.FieldSet
			*f.fields(kind), masked, ok = decodeOXMs(p)
			if kind == TablePropertyMatch {
				f.Maskable = masked
			}
		case tablePropExperimenter, tablePropExperimenterMiss:
			if n < tablePropExpLen {
				return malformed(TypeMultipartReply, off+2, "experimenter's table property cut short", answer)
			}
			f.Experimenters = append(f.Experimenters, TableExperimenter{
				Miss: kind == tablePropExperimenterMiss, Experimenter: be.Uint32(p), ExpType: be.Uint32(p[4:]), Data: p[8:],
			})
		}
		if !ok {
			return malformed(TypeMultipartReply, off+4, "list in a table property cut short or of zero length", answer)
		}
		if kind < 16 {
			f.Given |= 1 << kind
		}
		off += pad8(n)
	}
	f.Given &= knownTableProperties
	return nil
}

// knownTableProperties leaves out the numbers that OpenFlow 1.3 does not use.
const knownTableProperties = 1<<16 - 1 - 1<<9 - 1<<11

// decodeNumbers reads a list of the headers of instructions or actions.
func decodeNumbers(b []byte, set *uint32) bool {
	for len(b) > 0 {
		if len(b) < 4 {
			return false
		}
		kind, n := be.Uint16(b), int(be.Uint16(b[2:]))
		if n < 4 || n > len(b) {
			return false
		}
		switch {
		case kind == 0xffff:
			*set |= SetExperimenter
		case kind < 31:
			*set |= 1 << kind
		}
		b = b[n:]
	}
	return true
}

// decodeOXMs reads a list of OXM headers without values.
func decodeOXMs(b []byte) (fields, masked flow.FieldSet, ok bool) {
	for len(b) > 0 {
		if len(b) < 4 {
			return 0, 0, false
		}
		h := be.Uint32(b)
		n := 4
		switch f, known := fieldOf(h); {
		case h>>16 == 0xffff: // an experimenter's, with its identifier
			n = 8
		case known:
			fields |= f.Bit()
			if h&oxmHasMask != 0 {
				masked |= f.Bit()
			}
		}
		if len(b) < n {
			return 0, 0, false
		}
		b = b[n:]
	}
	return fields, masked, true
}

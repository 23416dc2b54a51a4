package simulate

import (
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// batchesFew is with how many batches a result is good enough; twice as many are
// merged in pairs.
const batchesFew = 32

// batch is what was seen of consecutive packets.
type batch struct {
	packets  int
	lost     int
	sum      float64   // of times in the system
	controls []float64 // sums
	counts   []uint32  // histogram of times in the system
}

// batches sums packets up in batches of equal size.
type batches struct {
	size       int
	percentile float64
	expected   []float64 // of the controls, for each packet
	now        batch
	closed     []batch
}

func newBatches(size int, percentile float64, expected []float64) *batches {
	b := &batches{size: size, percentile: percentile, expected: expected}
	b.now = b.empty()
	return b
}

func (b *batches) empty() batch {
	if b.percentile > 0 {
		return batch{counts: make([]uint32, bins)}
	}
	return batch{}
}

func (b *batches) add(sojourn float64, lost bool) {
	b.now.packets++
	if lost {
		b.now.lost++
		return
	}
	b.now.sum += sojourn
	if b.percentile > 0 {
		b.now.counts[binOf(sojourn)]++
	}
}

func (b *batches) full() bool { return b.now.packets == b.size }

// close begins the next batch, and merges batches when there are many.
func (b *batches) close(controls []float64) {
	b.now.controls = controls
	b.closed = append(b.closed, b.now)
	b.now = b.empty()
	if len(b.closed) < 2*batchesFew {
		return
	}
	for i := range batchesFew {
		x, y := &b.closed[2*i], &b.closed[2*i+1]
		x.packets += y.packets
		x.lost += y.lost
		x.sum += y.sum
		for k := range x.controls {
			x.controls[k] += y.controls[k]
		}
		for k := range x.counts {
			x.counts[k] += y.counts[k]
		}
		b.closed[i] = *x
	}
	b.closed = b.closed[:batchesFew]
	b.size *= 2
}

// result sums the closed batches up.
func (b *batches) result() Result {
	var r Result
	lost := 0
	y := make([]float64, len(b.closed))
	x := make([][]float64, len(b.closed))
	quantiles := make([]float64, len(b.closed))
	all := b.empty()
	for i, c := range b.closed {
		r.Packets += c.packets
		lost += c.lost
		y[i] = c.sum / math.Max(1, float64(c.packets-c.lost))
		for k, sum := range c.controls {
			x[i] = append(x[i], sum/float64(c.packets)-b.expected[k])
		}
		for k, n := range c.counts {
			all.counts[k] += n
		}
		quantiles[i] = quantile(c.counts, b.percentile)
	}
	r.Loss = float64(lost) / math.Max(1, float64(r.Packets))
	r.Mean, r.MeanCI = regressed(y, x)
	if b.percentile > 0 {
		_, r.PercentileCI = interval(quantiles)
		r.Percentile = quantile(all.counts, b.percentile)
	}
	return r
}

// interval returns the mean of independent values and the half width of its
// confidence interval.
func interval(values []float64) (mean, half float64) {
	n := float64(len(values))
	if n < 2 {
		return math.NaN(), math.Inf(1)
	}
	for _, v := range values {
		mean += v / n
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, student(n-1) * math.Sqrt(squares/(n-1)/n)
}

func student(freedom float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(0.975)
}

// regressed returns the mean of y with the controls x, whose expectation is 0, at
// 0: what of y's deviation theirs explains is taken off (control variates by
// regression).
func regressed(y []float64, x [][]float64) (mean, half float64) {
	mean, half = interval(y)
	used := varying(x)
	n, q := len(y), len(used)
	if q == 0 || n < 4*(q+1) {
		return mean, half
	}
	design := mat.NewDense(n, q+1, nil)
	for i := range x {
		design.Set(i, 0, 1)
		for k, c := range used {
			design.Set(i, k+1, x[i][c.column]/c.scale)
		}
	}
	var normal, inverse, right, beta, rest mat.Dense
	normal.Mul(design.T(), design)
	if inverse.Inverse(&normal) != nil {
		return mean, half
	}
	right.Mul(design.T(), mat.NewDense(n, 1, y))
	beta.Mul(&inverse, &right)
	rest.Mul(design, &beta)
	squares := 0.0
	for i := range y {
		squares += (y[i] - rest.At(i, 0)) * (y[i] - rest.At(i, 0))
	}
	freedom := float64(n - q - 1)
	controlled := student(freedom) * math.Sqrt(squares/freedom*inverse.At(0, 0))
	if !(controlled < half) {
		return mean, half
	}
	return beta.At(0, 0), controlled
}

type control struct {
	column int
	scale  float64
}

// varying returns the controls that vary, with the size of their deviations.
func varying(x [][]float64) (list []control) {
	if len(x) == 0 {
		return nil
	}
	for k := range x[0] {
		scale, differ := 0.0, false
		for i := range x {
			scale = max(scale, math.Abs(x[i][k]))
			differ = differ || math.Abs(x[i][k]-x[0][k]) > 1e-9*scale
		}
		if differ && scale > 0 {
			list = append(list, control{k, scale})
		}
	}
	return list
}

// The histogram has bins of about 0.8 %: the exponent and seven bits of the
// mantissa of a number from 2^-64 to 2^32.
const (
	binBits  = 7
	binFirst = (1023 - 64) << binBits
	bins     = 96 << binBits
)

func binOf(v float64) int {
	return min(max(int(math.Float64bits(v)>>(52-binBits))-binFirst, 0), bins-1)
}

// quantile returns a percentile of a histogram, within a bin by interpolation.
func quantile(counts []uint32, percentile float64) float64 {
	total := 0.0
	for _, n := range counts {
		total += float64(n)
	}
	rank, below := percentile/100*total, 0.0
	for i, n := range counts {
		if n > 0 && below+float64(n) >= rank {
			edge := func(i int) float64 { return math.Float64frombits(uint64(i+binFirst) << (52 - binBits)) }
			return edge(i) + (edge(i+1)-edge(i))*(rank-below)/float64(n)
		}
		below += float64(n)
	}
	return 0
}

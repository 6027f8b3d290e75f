package dra

import (
	"fmt"
	"math"
	"slices"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/dynamic-resource-allocation/cel"
)

// MostPrice is the largest price of all expressions that the claims of one pod contain: an upper bound of the work for
// one device. Users write these expressions, and the scheduler evaluates them for every device of the cluster in its
// loop.
//
// A unit is a quarter to three quarters of a microsecond: the dearest admitted claims take 0.1 to 1.5 ms for each
// device (BenchmarkSelectors_DearestAdmitted). A usual selector has a price of 30 to 90, so each of 32 requests may
// have one. The API server admits a cost of 1,000,000 for each selector, and 1,024 selectors for each claim.
const MostPrice = 2000

const (
	// priceEach is the price of starting an evaluation: the device's attributes are copied.
	priceEach = 25
	// priceParse is the price of a call that parses a text, above its cost in CEL, which is 1.
	priceParse = 10
	// priceMaps is the price of a comparison of a device's maps, which CEL counts as one step.
	priceMaps = 500
	// priceSlow and factorSlow are for calls that allocate memory for each character, above their cost in CEL.
	priceSlow, factorSlow = 100, 4
	// priceMatch is the price of one instruction of a regular expression on one character, priceShort that for at most
	// mostShort instructions and characters, which Go matches in a faster way. CEL counts the characters of the
	// expression instead, but a repetition of four characters can be a thousand instructions.
	priceMatch, priceShort = 0.1, 0.03
	mostShort              = 500
)

// pricing is the way to price a function. A function without one is refused, because its work may not depend on what
// CEL counts: a format or a range has the length that a number in it says.
type pricing int

const (
	_ pricing = iota
	asCounted
	parses
	slow
	matches
)

// pricingOf returns the pricing of a function, 0 for none.
func pricingOf(function string) pricing {
	switch function {
	case operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Equals,
		operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
		operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo,
		operators.Negate,
		operators.Index, operators.OptIndex, operators.OptSelect, operators.In, operators.NotStrictlyFalse,
		"size", "contains", "startsWith", "endsWith", "lowerAscii", "upperAscii", "includes",
		"compareTo", "isGreaterThan", "isLessThan", "major", "minor", "patch",
		"sign", "isInteger", "asInteger", "asApproximateFloat",
		"dyn", "bool", "int", "uint", "double", "string",
		"orValue", "or", "value", "hasValue", "optional.of", "optional.none":
		return asCounted
	case "quantity", "isQuantity", "add", "sub", "semver", "isSemver", "ip", "isIP", "ip.isCanonical", "family",
		"cidr", "isCIDR", "containsIP", "containsCIDR", "masked", "prefixLength":
		return parses
	case "replace", "split", "join", "trim", "substring", "charAt", "indexOf", "lastIndexOf", "sum", "min", "max",
		"isSorted", "url", "isURL", "getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery",
		"format.named", "validate":
		return slow
	case "matches", "find", "findAll":
		return matches
	}
	return 0
}

// price is an upper bound of the work of evaluating an expression on any device. Refused names a part of the expression
// whose work has no bound that is known, "" for none.
type price struct {
	units   uint64
	refused string
}

// priceOf returns the price of an expression, which is known to compile.
func priceOf(compiled cel.CompilationResult) price {
	checked, issues := compiled.Environment.Compile(compiled.Expression)
	if issues != nil && issues.Err() != nil {
		return price{refused: "text that does not compile"}
	}
	if refused := unbounded(checked.NativeRep()); refused != "" {
		return price{refused: refused}
	}
	prices := pricer{&library.CostEstimator{SizeEstimator: deviceSizes{}}}
	cost, err := compiled.Environment.EstimateCost(checked, prices)
	if err != nil || cost.Max > math.MaxUint32 { // a length without a limit, times other costs
		return price{refused: "texts or lists of unknown length"}
	}
	return price{units: priceEach + cost.Max}
}

// charge adds the price of an expression of a request. It returns the fault that this is too much, "" for none. The
// text of the expression may have 10 KiB and is left out.
func (t *terms) charge(p price, request, what string) string {
	if p.refused != "" {
		return fmt.Sprintf("request %s: a %s uses %s, whose work for each device is not bounded; write it without",
			request, what, p.refused)
	}
	if t.price += p.units; t.price > MostPrice {
		return fmt.Sprintf(
			"request %s: with its %ss the pod's claims cost %d units of work for each device, at most %d are "+
				"admitted; use fewer or simpler ones, without loops and regular expressions",
			request,
			what,
			t.price,
			MostPrice,
		)
	}
	return ""
}

// unbounded names the first part of an expression whose work CEL's cost does not bound, "" for none. Such are unknown
// functions, regular expressions that are computed, and values in values: comparing two of those counts as one step.
func unbounded(tree *ast.AST) string {
	refused := ""
	plain := func(e ast.Expr) bool { return isPlain(tree.GetType(e.ID()), true) }
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case refused != "":
		case e.Kind() == ast.MapKind || e.Kind() == ast.StructKind:
			refused = "a map"
		case e.Kind() == ast.ListKind && !all(e.AsList().Elements(), plain):
			refused = "a list of maps"
		case e.Kind() == ast.CallKind:
			refused = unboundedCall(tree, e.AsCall(), plain)
		}
	}))
	return refused
}

// all reports whether a condition holds for all of these.
func all[T any](list []T, ok func(T) bool) bool {
	return !slices.ContainsFunc(list, func(e T) bool { return !ok(e) })
}

func unboundedCall(tree *ast.AST, call ast.CallExpr, plain func(ast.Expr) bool) string {
	name, args := call.FunctionName(), call.Args()
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	single := func(e ast.Expr) bool { return isPlain(tree.GetType(e.ID()), false) }
	switch name {
	case operators.Index, operators.OptIndex, operators.OptSelect, "size":
		return ""
	case operators.In:
		if !single(args[0]) {
			return "a search for a list or a map"
		}
		return ""
	case "dyn":
		if !single(args[0]) {
			return "dyn of a list or a map"
		}
		return ""
	}
	if len(args) > 0 && comparesMaps(name, tree.GetType(args[0].ID())) {
		return ""
	}
	switch p := pricingOf(name); {
	case p == 0:
		return "function " + name
	case p == matches && args[1].Kind() != ast.LiteralKind:
		return "a regular expression that is not a literal"
	case !all(args, plain):
		return fmt.Sprintf("a map or a list of lists as an operand of %s", name)
	}
	return ""
}

// comparesMaps reports whether a call compares values of this type, and they are a device or maps of it: no expression
// that is admitted makes others.
func comparesMaps(function string, t *types.Type) bool {
	return (function == operators.Equals || function == operators.NotEquals) && isMap(t)
}

func isMap(t *types.Type) bool {
	return t.Kind() == types.MapKind || t.Kind() == types.StructKind && t.TypeName() == "kubernetes.DRADevice"
}

// isPlain reports whether a value of the type has no values in it, or is a list of such where lists may be. A value of
// an attribute is plain: its own lists are short.
func isPlain(t *types.Type, list bool) bool {
	switch t.Kind() {
	case types.ListKind:
		return list && isPlain(t.Parameters()[0], false)
	case types.OpaqueKind: // an optional value
		return all(t.Parameters(), func(p *types.Type) bool { return isPlain(p, list) })
	default:
		return !isMap(t)
	}
}

// deviceSizes bounds every text, list and map of a device as the API server does.
type deviceSizes struct{}

// EstimateSize implements checker.CostEstimator for the values of a device.
func (deviceSizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if path := node.Path(); len(path) == 0 || path[0] != "device" {
		return nil
	}
	return &checker.SizeEstimate{Max: max(
		resourcev1.DeviceAttributeMaxValueLength, resourcev1.DeviceMaxDomainLength, resourcev1.DriverNameMaxLength,
		resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice,
	)}
}

// EstimateCallCost implements checker.CostEstimator: calls cost what they cost elsewhere.
func (deviceSizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// pricer is Kubernetes' estimator with the prices of this file.
type pricer struct{ *library.CostEstimator }

// EstimateCallCost implements checker.CostEstimator.
func (p pricer) EstimateCallCost(
	function, overload string, target *checker.AstNode, args []checker.AstNode,
) *checker.CallEstimate {
	counted := p.CostEstimator.EstimateCallCost(function, overload, target, args)
	kind := pricingOf(function)
	if len(args) > 0 && comparesMaps(function, args[0].Type()) {
		return &checker.CallEstimate{CostEstimate: checker.FixedCostEstimate(priceMaps)}
	}
	if kind == 0 || kind == asCounted {
		return counted
	}
	if counted == nil {
		counted = &checker.CallEstimate{CostEstimate: checker.FixedCostEstimate(1)}
	}
	switch kind {
	case parses:
		counted.CostEstimate = counted.Add(checker.FixedCostEstimate(priceParse))
	case slow:
		counted.CostEstimate = counted.MultiplyByCostFactor(factorSlow).Add(checker.FixedCostEstimate(priceSlow))
	case matches:
		if target != nil {
			args = append([]checker.AstNode{*target}, args...)
		}
		pattern, _ := args[1].Expr().AsLiteral().Value().(string)
		work := matching(instructions(pattern), p.length(args[0]))
		if function == "findAll" { // every match is a text of its own
			work = work.MultiplyByCostFactor(factorSlow)
		}
		counted.CostEstimate = counted.Add(work)
	default: // as counted
	}
	return counted
}

// matching returns the price of a regular expression of so many instructions on a text.
func matching(instructions int, text checker.SizeEstimate) checker.CostEstimate {
	each := priceMatch
	if instructions <= mostShort && text.Max <= mostShort {
		each = priceShort
	}
	return text.MultiplyByCostFactor(each * float64(instructions))
}

// length returns the length of a text, and one for its end.
func (p pricer) length(text checker.AstNode) checker.SizeEstimate {
	size := text.ComputedSize()
	if size == nil {
		size = p.EstimateSize(text)
	}
	if size == nil {
		return checker.UnknownSizeEstimate()
	}
	return size.Add(checker.FixedSizeEstimate(1))
}

package dra

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// lens is what of a device a demand reads. Names are identifiers without their domain, which may name too much and
// never too little.
type lens struct {
	everything bool
	names      map[string]bool
}

// text is the same for lenses that read the same.
func (l *lens) text() string {
	if l.everything {
		return "*"
	}
	return strings.Join(sortedKeys(l.names), " ")
}

// reads reports whether the attribute or capacity of this name can matter.
func (l *lens) reads(name resourcev1.QualifiedName) bool {
	return l.everything || l.names[identifier(string(name))]
}

// identifier drops the domain of a qualified name.
func identifier(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// add takes in what another lens reads.
func (l *lens) add(other *lens) {
	l.everything = l.everything || other.everything
	maps.Copy(l.names, other.names)
}

// reading returns what an expression reads: every field that it selects and every string that it contains, because a
// string may be the key of an attribute. An expression that does with a map of attributes anything but look up a
// literal key reads everything. The expression has compiled before.
func reading(compiled cel.CompilationResult) *lens {
	l := &lens{names: map[string]bool{}}
	checked, issues := compiled.Environment.Compile(compiled.Expression)
	if issues != nil && issues.Err() != nil {
		l.everything = true
		return l
	}
	tree := checked.NativeRep()
	isMap := func(e ast.Expr) bool { return mayBeMap(tree.GetType(e.ID())) }
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			l.names[e.AsSelect().FieldName()] = true
		case ast.LiteralKind:
			if s, ok := e.AsLiteral().Value().(string); ok {
				l.names[s] = true
			}
		case ast.CallKind:
			l.everything = l.everything || wanders(e.AsCall(), isMap)
		case ast.ComprehensionKind:
			l.everything = l.everything || isMap(e.AsComprehension().IterRange())
		case ast.ListKind, ast.MapKind, ast.StructKind:
			// A map put into something else is out of sight.
			l.everything = l.everything || slices.ContainsFunc(parts(e), isMap)
		default:
		}
	}))
	return l
}

// parts returns the elements of a list; what is in a map or a structure is taken for a map.
func parts(e ast.Expr) []ast.Expr {
	if e.Kind() == ast.ListKind {
		return e.AsList().Elements()
	}
	return []ast.Expr{e}
}

// wanders reports whether a call does more with maps than to look up a literal key.
func wanders(call ast.CallExpr, isMap func(ast.Expr) bool) bool {
	args := call.Args()
	switch call.FunctionName() {
	case operators.Index, operators.OptIndex:
		return isMap(args[0]) && args[1].Kind() != ast.LiteralKind
	case operators.In:
		return isMap(args[1]) && args[0].Kind() != ast.LiteralKind
	}
	return slices.ContainsFunc(args, isMap) || call.IsMemberFunction() && isMap(call.Target())
}

// mayBeMap reports whether a value of the type holds attributes or capacities by name. Attributes themselves are of a
// type that may be anything and hold nothing; what makes a map look like one of them is a call, which is seen itself.
func mayBeMap(t *types.Type) bool { return t == nil || t.Kind() == types.MapKind }

// constrained takes in the attribute that a constraint compares.
func (l *lens) constrained(c resourcev1.DeviceConstraint) {
	for _, name := range []*resourcev1.FullyQualifiedName{c.MatchAttribute, c.DistinctAttribute} {
		if name != nil {
			l.names[identifier(string(*name))] = true
		}
	}
}

// requested takes in the capacities that a request names.
func (l *lens) requested(c *resourcev1.CapacityRequirements) {
	if c == nil {
		return
	}
	for name := range c.Requests {
		l.names[identifier(string(name))] = true
	}
}

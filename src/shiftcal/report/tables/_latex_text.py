"""Plain text as LaTeX that prints just that text."""

from __future__ import annotations

import re

_BREAK = "\0"
_COMMANDS = {
    "\\": r"\textbackslash{}",
    "{": r"\{", "}": r"\}", "#": r"\#", "$": r"\$", "%": r"\%", "&": r"\&", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "{''}", "`": "{`}",
    # The \\ or the rule before them would take these for its argument.
    "[": "{[}", "*": "{*}",
    _BREAK: "{}",
}  # fmt: skip
# Beyond ASCII, what pdfLaTeX cannot print, or only with further packages.
_SYMBOLS = {
    "–": "{--}", "—": "{---}", "‘": "{`}", "’": "{'}", "“": "{``}", "”": "{''}", "…": r"\dots{}",
    "±": r"$\pm$", "×": r"$\times$", "÷": r"$\div$", "·": r"$\cdot$", "−": "$-$", "∞": r"$\infty$",
    "≤": r"$\leq$", "≥": r"$\geq$", "≠": r"$\neq$", "≈": r"$\approx$", "∼": r"$\sim$",
    "→": r"$\rightarrow$", "←": r"$\leftarrow$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    "°": r"$^{\circ}$", "²": "$^{2}$", "³": "$^{3}$", "√": r"$\surd$", "∈": r"$\in$",
    "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "δ": r"$\delta$", "ε": r"$\varepsilon$",
    "ζ": r"$\zeta$", "η": r"$\eta$", "θ": r"$\theta$", "κ": r"$\kappa$", "λ": r"$\lambda$",
    "μ": r"$\mu$", "µ": r"$\mu$", "ν": r"$\nu$", "ξ": r"$\xi$", "π": r"$\pi$", "ρ": r"$\rho$",
    "σ": r"$\sigma$", "τ": r"$\tau$", "φ": r"$\varphi$", "χ": r"$\chi$", "ψ": r"$\psi$",
    "ω": r"$\omega$", "Γ": r"$\Gamma$", "Δ": r"$\Delta$", "Θ": r"$\Theta$", "Λ": r"$\Lambda$",
    "Σ": r"$\Sigma$", "Φ": r"$\Phi$", "Ψ": r"$\Psi$", "Ω": r"$\Omega$",
}  # fmt: skip
_ALL = str.maketrans(_COMMANDS | _SYMBOLS)
# Two hyphens would become a dash and two primes a quotation mark.
_LIGATURE = re.compile(r"([-'])(?=\1)")


def escaped(text: str) -> str:
    """The text in one line; every character that means something to LaTeX is printed instead.

    Common symbols and Greek letters become commands that need no package. What else lies beyond
    ASCII stays as it is: accented letters print everywhere, other scripts in XeLaTeX and LuaLaTeX.
    """
    line = " ".join(text.replace(_BREAK, "").split())
    return _LIGATURE.sub(rf"\1{_BREAK}", line).translate(_ALL)

// Starts Swagger UI on this server's own document. An API key that a person enters stays in the page's memory only.

// Swagger UI's own filter compares tags only. This filter compares operations: every word must occur in an operation's texts.
const searchOperations = {
  fn: {
    opsFilter: (groups, phrase) => {
      const words = phrase.toLowerCase().split(/\s+/).filter(Boolean);
      const matches = (tag, entry) => {
        const texts = [tag, entry.get("method"), entry.get("path")];
        for (const name of ["operationId", "summary", "description"]) texts.push(entry.getIn(["operation", name]));
        const text = texts.join(" ").toLowerCase();
        return words.every((word) => text.includes(word));
      };
      return groups
        .map((group, tag) => group.update("operations", (entries) => entries.filter((entry) => matches(tag, entry))))
        .filter((group) => group.get("operations").size > 0);
    },
  },
};

const dark = matchMedia("(prefers-color-scheme: dark)");
const applyColours = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", applyColours);
applyColours();

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  plugins: [searchOperations],
  validatorUrl: null, // the default asks a server elsewhere
  onComplete: () => {
    document.querySelector(".operation-filter-input").placeholder = "Search the operations";
  },
});

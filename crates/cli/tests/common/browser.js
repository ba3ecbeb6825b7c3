// Letters and lines may stick out by less than a pixel, which nobody sees.
const SLACK = 1;
const faults = [];
const beyond = (inner, outer) =>
  Math.max(outer.left - inner.left, inner.right - outer.right, outer.top - inner.top, inner.bottom - outer.bottom);
const check = (what, inner, outer) => {
  const by = beyond(inner, outer);
  if (by > SLACK) faults.push(`${what} by ${by.toFixed(1)} pixels`);
};
const pictures = document.querySelectorAll('svg');
for (const picture of pictures) {
  const box = picture.getBoundingClientRect();
  const figure = picture.closest('figure');
  const title = figure.querySelector('figcaption').textContent;
  check(`${title}: is beyond its figure`, box, figure.getBoundingClientRect());
  for (const part of picture.querySelectorAll('text, rect, line, polyline, polygon, circle, path'))
    check(`${title}: ${part.tagName} ${part.textContent.trim()} is beyond its picture`, part.getBoundingClientRect(), box);
}
for (const figure of document.querySelectorAll('figure'))
  check(`${figure.querySelector('figcaption').textContent}: figure is beyond the page`, figure.getBoundingClientRect(),
    document.body.getBoundingClientRect());
if (document.documentElement.scrollWidth > window.innerWidth)
  faults.push(`the page is ${document.documentElement.scrollWidth} wide in a window of ${window.innerWidth}`);
parent.postMessage({ pictures: pictures.length, faults: faults.map(fault => `${NAME}: ${fault}`) }, '*');
